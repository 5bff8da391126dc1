"""Making things go wrong, and right again where they do not last."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from chaos.scenarios import (
    DISK,
    DRIVER,
    DRIVER_PAUSED,
    EXECUTOR,
    EXECUTOR_PAUSED,
    INTERRUPT,
    JOB_PAUSED,
    PARTITION,
    SERVER,
    WORKER,
    WORKER_PAUSED,
    WORKERS,
    Fault,
)
from tests.clusters import processes
from tests.clusters.drivers import Driver
from tests.clusters.hosts import plug_cable, pull_cable
from tests.clusters.processes import Process
from tests.clusters.standalone import StandaloneCluster

Undo = Callable[[], object]


class Missed(Exception):  # noqa: N818 - says what happened
    """There was nobody left to hit."""


class Strike:
    """A fault as it happened: `at` is when, on the monotonic clock, and `rank` to whom."""

    def __init__(self, fault: Fault, cluster: StandaloneCluster, driver: Driver, disk: Path | None = None) -> None:
        self.fault = fault
        self.rank = fault.rank
        self.at = time.monotonic()
        self._undo: Undo | None = None
        hits: dict[str, Callable[[], Undo | None]] = {
            WORKER: lambda: _send(self._worker(cluster), signal.SIGKILL),
            EXECUTOR: lambda: _send(self._executor(cluster), signal.SIGKILL),
            SERVER: lambda: _send(cluster.server(fault.rank), signal.SIGKILL),
            DRIVER: lambda: _send(driver.process, signal.SIGKILL),
            INTERRUPT: lambda: _send(driver.process, signal.SIGINT),
            WORKER_PAUSED: lambda: _pause(lambda: [self._worker(cluster)]),
            EXECUTOR_PAUSED: lambda: _pause(lambda: [self._any_executor(cluster)]),
            DRIVER_PAUSED: lambda: _pause(
                lambda: [driver.process, *processes.below(driver.process, cluster.members())]
            ),
            JOB_PAUSED: lambda: _pause(cluster.members),
            PARTITION: lambda: _cut_off(cluster, self._executor(cluster)),
            DISK: lambda: _fill(disk),
        }
        self._undo = hits[fault.kind]()

    @property
    def lasts_until(self) -> float:
        """When what does not last is over."""
        return self.at + self.fault.seconds

    def undo(self) -> None:
        """Make it right again, once."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    @property
    def is_open(self) -> bool:
        """Whether there is something to undo."""
        return self._undo is not None

    def _worker(self, cluster: StandaloneCluster) -> Process | None:
        # Where workers do not wait, one may be through long before the others.
        for rank in sorted(range(WORKERS), key=lambda each: each != self.fault.rank):
            worker = cluster.worker(rank)
            if worker is not None:
                self.rank = rank
                return worker
        return None

    def _executor(self, cluster: StandaloneCluster) -> Process | None:
        worker = self._worker(cluster)
        return None if worker is None else cluster.executor_of(worker)

    def _any_executor(self, cluster: StandaloneCluster) -> Process | None:
        """The executor of a worker, or one of those that are there when no worker is."""
        executors = cluster.executors()
        return self._executor(cluster) or (executors[self.fault.rank % len(executors)] if executors else None)


def _send(process: Process | None, number: signal.Signals) -> None:
    if process is None or not process.send(number):
        raise Missed


def _pause(whom: Callable[[], Sequence[Process | None]]) -> Undo:
    """Stop processes, and those that they have started meanwhile."""
    stopped: list[Process] = []
    for _ in range(2):
        stopped += [each for each in whom() if each is not None and each not in stopped and each.send(signal.SIGSTOP)]
    if not stopped:
        raise Missed
    return lambda: [each.send(signal.SIGCONT) for each in stopped]


def _cut_off(cluster: StandaloneCluster, executor: Process | None) -> Undo:
    if executor is None:
        raise Missed
    host = cluster.host_of(executor)
    pull_cable(host)
    return lambda: plug_cable(host)


def _fill(disk: Path | None) -> Undo:
    """Leave no byte on the file system of a folder."""
    if disk is None:
        raise Missed
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    return lambda: ballast.unlink(missing_ok=True)
