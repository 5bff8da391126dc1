"""Training in plain processes on this machine, without Spark. Runs on the driver.

The same worker loop, server and follower as on Spark: for fast tests, for machines that have no Spark, and for
looking at the engine by itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from keraunos import scratch
from keraunos.errors import DataError, JobError, WorkerError
from keraunos.job.saving import Checkpoints
from keraunos.job.training_job import TrainingJob
from keraunos.launch import interrupts
from keraunos.launch.attempts import saved, until_whole
from keraunos.launch.callback_checks import check_callbacks
from keraunos.launch.fit import Fit
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.hooks import Hooks
from keraunos.launch.interrupts import Interrupts
from keraunos.launch.training_result import TrainingResult
from keraunos.worker.memory import after_kill

Partition = Any  # a pyarrow.Table; pyarrow is used untyped


def fit(
    job: TrainingJob,
    partitions: Sequence[Partition],
    *,
    custom_objects: Mapping[str, Any] | None = None,
    callbacks: Sequence[Any] = (),
    hooks: Sequence[Hooks] = (),
    listeners: Sequence[Any] = (),
    verbose: int | str = "auto",
    threads: int = 1,
    max_failures: int = 1,
    checkpoints: Checkpoints | None = None,
) -> TrainingResult:
    """Train in one process a partition; each partition is an Arrow table with the job's columns.

    Custom objects must be importable by their module and name, because the processes start fresh. A process that is
    lost is started again until it has been lost `max_failures` times, as `spark.task.maxFailures` does it. With
    `checkpoints` the training is saved there as it goes, and goes on from there when this is called again. `listeners`
    are told what happens (see `keraunos.telemetry.listener`).
    """
    if len(partitions) != job.workers:
        raise JobError(f"There must be one partition a worker. Received: {len(partitions)} for {job.workers} workers.")
    if not sum(partition.num_rows for partition in partitions):
        raise DataError("The partitions have no rows to train on. Expected at least one; received: 0 rows.")
    check_callbacks(callbacks)
    with Interrupts(), FitEvents(job, listeners) as events, saved(job, checkpoints) as saving:

        def attempt() -> TrainingResult:
            with Fit.open(
                job,
                events,
                custom_objects=custom_objects,
                callbacks=callbacks,
                hooks=hooks,
                verbose=verbose,
                saving=saving,
            ) as opened:
                if opened.over:
                    return opened.finish()
                with WorkerProcesses(
                    job, opened.connection, partitions, custom_objects, threads, max_failures
                ) as workers:
                    return opened.follow(workers)

        return until_whole(attempt, saving, events.warn)


class WorkerProcesses:
    """One process a worker, fed through its standard input; leaving the context ends them all."""

    def __init__(
        self,
        job: TrainingJob,
        connection: Mapping[str, Any],
        partitions: Sequence[Partition],
        custom_objects: Mapping[str, Any] | None,
        threads: int,
        max_failures: int = 1,
    ) -> None:
        self._job = job
        self._connection = connection
        self._partitions = partitions
        self._imports = _references(custom_objects)
        self._threads = threads
        self._max_failures = max_failures
        self._stack = ExitStack()
        self._folder = ""
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._feeders: list[threading.Thread] = []
        self._logs: dict[int, IO[bytes]] = {}
        self._failures: Counter[int] = Counter()
        self._abandoned: set[int] = set()

    def __enter__(self) -> Self:
        self._folder = self._stack.enter_context(scratch.folder("workers"))
        for member in range(self._job.placement.tasks(self._job.workers)):
            self._logs[member] = self._stack.enter_context(tempfile.TemporaryFile(prefix="keraunos-"))
            self._start(member)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            try:
                process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for feeder in self._feeders:
            feeder.join()
        self._stack.close()

    def check(self) -> None:
        """Start a process that was lost again, or raise where that has happened too often, or where Ctrl-C came."""
        interrupts.check()
        for member, process in list(self._processes.items()):
            if process.poll() in (None, 0) or self._is_given_up(member):
                continue
            self._failures[member] += 1
            if self._failures[member] < self._max_failures:
                self._start(member)
                continue
            killed = after_kill("SIGKILL") if process.returncode == -signal.SIGKILL else ""
            raise WorkerError(
                f"its process ended with code {process.returncode}.{killed}",
                rank=member,
                host="this host",
                log_lines=self._tail(member),
            )

    def ended(self) -> bool:
        """Whether all processes are over."""
        return all(process.poll() is not None for process in self._processes.values())

    def advice(self) -> str:
        """What a user may do when workers do not come."""
        return "See that this machine has the memory for that many processes, or use fewer workers."

    def preparing(self, seconds: float) -> bool:
        """Never: the rows are there before the workers are."""
        return False

    def abandon(self, rank: int) -> None:
        """The training goes on without this rank; it is started again as any other, and its last end is no error."""
        self._abandoned.add(rank)

    def _is_given_up(self, member: int) -> bool:
        return member in self._abandoned and self._failures[member] + 1 >= self._max_failures

    def _start(self, member: int) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "keraunos.launch.local_worker"],
            stdin=subprocess.PIPE,
            stdout=self._logs[member],
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "KERAS_BACKEND": self._job.model.backend,
                "OMP_NUM_THREADS": str(self._threads),
                # A process that must be killed cannot remove its temporary files.
                "TMPDIR": self._folder,
                "JAX_THREEFRY_PARTITIONABLE": "0",
            },
        )
        self._processes[member] = process
        # A pipe holds little, so that feeding one worker would otherwise wait for it to import its framework.
        feeder = threading.Thread(target=self._feed, args=(process, member), daemon=True)
        self._feeders.append(feeder)
        feeder.start()

    def _feed(self, process: subprocess.Popen[bytes], member: int) -> None:
        """A worker's place and rows, or, behind the last worker, which slice to serve."""
        serves = member >= self._job.workers
        partition = None if serves else self._partitions[member]
        header = {
            "slice": member - self._job.workers if serves else None,
            "connection": self._connection,
            "rank": member,
            "incarnation": self._failures[member],
            "threads": self._threads,
            "workers": self._job.workers,
            "imports": self._imports,
        }
        if process.stdin is None:
            return
        try:
            with process.stdin as pipe:
                blob = json.dumps(header).encode()
                pipe.write(len(blob).to_bytes(8, "big"))
                pipe.write(blob)
                if partition is None:
                    return
                with pa.ipc.new_stream(pipe, partition.schema) as stream:
                    stream.write_table(partition)
        except (BrokenPipeError, pa.ArrowInvalid, OSError):
            # The process is gone; `check` says why.
            return

    def _tail(self, member: int) -> list[str]:
        log = self._logs[member]
        log.seek(0)
        return log.read().decode(errors="replace").splitlines()[-20:]


def _references(custom_objects: Mapping[str, Any] | None) -> dict[str, list[str]]:
    references = {}
    for name, value in (custom_objects or {}).items():
        if value.__module__ == "__main__" or "<" in value.__qualname__:
            raise JobError(
                f"The custom object {name!r} must be importable, because workers are fresh processes. "
                f"Received: {value!r} defined in {value.__module__}. Move it to a module."
            )
        references[name] = [value.__module__, value.__qualname__]
    return references
