"""Worker processes that are forked from one which has imported Keras and JAX already: what they do is the same.

A new process takes seconds to import them, longer than most fits of the tests. `forked_workers` makes `launch.local`
fork its workers where a test is about what happens to processes, and not about how they start, as `test_local.py` is.
They give four signs of life where others give one, so that tests need less patience with one that is silent.
"""

import io
import multiprocessing
import multiprocessing.forkserver
import os
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from types import SimpleNamespace

import pytest

from keraunos.exchange import pulse
from keraunos.job import training_job
from keraunos.launch import local, local_worker

BACKEND = "jax"
# What each worker would import when it has its job.
MODULES = ["tests.conformance.forked_workers", "keraunos.worker.loop", f"keraunos.learners.keras_{BACKEND}"]
# What a process reads when it imports them; the same for each of `launch.local`'s workers.
VARIABLES = {"KERAS_BACKEND": BACKEND, "OMP_NUM_THREADS": "1", "JAX_THREEFRY_PARTITIONABLE": "0"}

PULSE_SECONDS = 0.5
# For how long a test waits for one that gives none, on a busy machine too.
PATIENCE = 3.0

_forking = multiprocessing.get_context("forkserver")


class ForkedWorker:
    """As much of `subprocess.Popen` as `launch.local` uses."""

    def __init__(self, command, *, stdin, stdout, stderr, env):
        assert command[1:] == ["-m", local_worker.__name__]
        assert (stdin, stderr) == (subprocess.PIPE, subprocess.STDOUT)
        assert VARIABLES.items() <= env.items()
        ours, theirs = multiprocessing.Pipe(duplex=False)
        log = Connection(os.dup(stdout.fileno()), readable=False)
        self._process = _forking.Process(target=_work, args=(ours, log, env))
        with ours, theirs, log:
            self._process.start()
            self.stdin = os.fdopen(os.dup(theirs.fileno()), "wb")
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(local_worker.__name__, timeout)
        return self.returncode

    def kill(self):
        self._process.kill()


def _work(rows, log, environment):
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    pulse.PULSE_SECONDS = PULSE_SECONDS
    training_job.LEAST_PATIENCE = PATIENCE
    os.dup2(rows.fileno(), 0)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    rows.close()
    log.close()
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.exit(local_worker.main())


@pytest.fixture(scope="session")
def fork_server():
    """The process that workers are forked from."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        _forking.set_forkserver_preload(MODULES)
        multiprocessing.forkserver.ensure_running()


@pytest.fixture
def forked_workers(fork_server, monkeypatch):
    """Have `launch.local` fork its workers; they have all ended when the test has."""
    made = []

    def fork(*given, **named):
        made.append(ForkedWorker(*given, **named))
        return made[-1]

    names = {name: getattr(subprocess, name) for name in ("PIPE", "STDOUT", "TimeoutExpired")}
    monkeypatch.setattr(training_job, "LEAST_PATIENCE", PATIENCE)
    monkeypatch.setattr(local, "subprocess", SimpleNamespace(**names, Popen=fork))
    yield
    assert [each.pid for each in made if each.poll() is None] == []
