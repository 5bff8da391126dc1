"""Training in plain processes on this machine, without Spark. Runs on the driver.

The same worker loop, server and follower as on Spark: for fast tests, for machines that have no Spark, and for
looking at the engine by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from keraunos.errors import DataError, JobError, WorkerError
from keraunos.job.training_job import TrainingJob
from keraunos.launch.callbacks import check_callbacks
from keraunos.launch.follow import Fit, TrainingResult

Partition = Any  # a pyarrow.Table; pyarrow is used untyped


def fit(
    job: TrainingJob,
    partitions: Sequence[Partition],
    *,
    custom_objects: Mapping[str, Any] | None = None,
    callbacks: Sequence[Any] = (),
    verbose: int | str = "auto",
    threads: int = 1,
) -> TrainingResult:
    """Train in one process a partition; each partition is an Arrow table with the job's columns.

    Custom objects must be importable by their module and name, because the processes start fresh.
    """
    if len(partitions) != job.workers:
        raise JobError(f"There must be one partition a worker. Received: {len(partitions)} for {job.workers} workers.")
    if not sum(partition.num_rows for partition in partitions):
        raise DataError("The partitions have no rows to train on. Expected at least one; received: 0 rows.")
    check_callbacks(callbacks)
    with (
        Fit.open(job, custom_objects=custom_objects, callbacks=callbacks, verbose=verbose) as opened,
        WorkerProcesses(job, opened.connection, partitions, custom_objects, threads) as workers,
    ):
        return opened.follow(workers)


class WorkerProcesses:
    """One process a worker, fed through its standard input; leaving the context ends them all."""

    def __init__(
        self,
        job: TrainingJob,
        connection: Mapping[str, Any],
        partitions: Sequence[Partition],
        custom_objects: Mapping[str, Any] | None,
        threads: int,
    ) -> None:
        self._job = job
        self._connection = connection
        self._partitions = partitions
        self._imports = _references(custom_objects)
        self._threads = threads
        self._stack = ExitStack()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._feeders: list[threading.Thread] = []
        self._errors: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        environment = {**os.environ, "KERAS_BACKEND": self._job.model.backend, "OMP_NUM_THREADS": str(self._threads)}
        servers = self._job.servers if isinstance(self._job.servers, int) else 0
        roles: list[tuple[int | None, int, Partition | None]] = [
            *((None, rank, partition) for rank, partition in enumerate(self._partitions)),
            *((index, self._job.workers + index, None) for index in range(servers)),
        ]
        for index, rank, partition in roles:
            log = self._stack.enter_context(tempfile.TemporaryFile(prefix="keraunos-"))
            process = subprocess.Popen(
                [sys.executable, "-m", "keraunos.launch.local_worker"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            self._processes.append(process)
            self._errors.append(log)
            # A pipe holds little, so that feeding one worker would otherwise wait for it to import its framework.
            feeder = threading.Thread(target=self._feed, args=(process, index, rank, partition), daemon=True)
            feeder.start()
            self._feeders.append(feeder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            try:
                process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for feeder in self._feeders:
            feeder.join()
        self._stack.close()

    def check(self) -> None:
        """Raise where a worker ended badly."""
        for rank, process in enumerate(self._processes):
            if process.poll() not in (None, 0):
                raise WorkerError(
                    f"its process ended with code {process.returncode}",
                    rank=rank,
                    host="this host",
                    log_lines=self._tail(rank),
                )

    def ended(self) -> bool:
        """Whether all processes are over."""
        return all(process.poll() is not None for process in self._processes)

    def advice(self) -> str:
        """What a user may do when workers do not come."""
        return "See that this machine has the memory for that many processes, or use fewer workers."

    def _feed(
        self, process: subprocess.Popen[bytes], index: int | None, rank: int, partition: Partition | None
    ) -> None:
        header = {
            "slice": index,
            "connection": self._connection,
            "rank": rank,
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

    def _tail(self, rank: int) -> list[str]:
        log = self._errors[rank]
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
