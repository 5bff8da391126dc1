"""Another user of the machine attacks a running fit: its sockets, its files, its processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive
from tests.conformance import engine
from tests.conformance import learner_models as models

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program of another user")


class Attack(keras.callbacks.Callback):
    """Runs the other user's program after the first epoch; what it found is read when the fit is over."""

    def __init__(self, program):
        super().__init__()
        self._program = program
        self.folder = None
        self.found = None

    def on_epoch_end(self, epoch, logs=None):
        if epoch:
            return
        listed = subprocess.run(
            ["pgrep", "-P", str(os.getpid()), "-f", "local_worker"], capture_output=True, check=True
        )
        pids = [str(os.getpid()), *listed.stdout.decode().split()]
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
        command = [python, str(self._program), ",".join(pids), str(self.folder)]
        identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        done = subprocess.run(command, **identity, capture_output=True, text=True, cwd="/", env={}, check=False)
        assert done.returncode == 0, done.stderr
        self.found = json.loads(done.stdout)


@pytest.mark.parametrize("servers", ["driver", "workers"])
def test_another_user_reaches_nothing_of_a_fit(servers, monkeypatch):
    # A folder on the way to pytest's own is closed to others; this one is not.
    program = Path("/tmp", f"other_user_{os.getpid()}.py")
    shutil.copy(Path(__file__).with_name("other_user.py"), program)
    program.chmod(0o644)
    attack = Attack(program)
    secrets = set()
    make = local.WorkerProcesses.__init__

    def noting(workers, job, connection, *given):
        attack.folder = Path(connection["address"].removeprefix("ipc://")).parent
        secrets.add(connection["credentials"]["secret"])
        make(workers, job, connection, *given)

    monkeypatch.setattr(local.WorkerProcesses, "__init__", noting)
    x = np.random.default_rng(0).normal(size=(200, models.FEATURES)).astype("float32")
    parts = engine.partitions(engine.table(x=x, y=(x[:, 0] > 0).astype("int64")), [120, 80])
    job = engine.job_of(models.dense("adam"), 2, batch_size=16, epochs=3, servers=servers)
    try:
        result = local.fit(job, parts, callbacks=[attack], verbose=0)
    finally:
        program.unlink()
    found = attack.found
    assert found["user"] == NOBODY
    assert found["tried"] > 100
    assert (found["read"], found["answered"], found["changed"]) == ({}, [], [])
    undisturbed, _ = engine.train(job, parts)
    assert engine.difference(from_archive(result.archive), undisturbed) == 0.0
    assert secrets
