"""Running scenarios on a cluster: one after the other, each with an end, whatever happens."""

from __future__ import annotations

import logging
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from chaos.disturbed import RUN_SECONDS, Disturbed, OutOfTime
from chaos.expectations import FINISHED, INTERRUPTED, REFUSED, WRONG
from chaos.leftovers import left_by_fit, left_files, shared_memory
from chaos.records import Record
from chaos.scenarios import PLANS, SLOW_ROW_MS, SYNCHRONOUS, Scenario, params_of
from tests.clusters import processes
from tests.clusters.drivers import ENDS, Driver
from tests.clusters.fit_spec import LOAD, FitSpec
from tests.clusters.hosts import Hosts
from tests.clusters.standalone import StandaloneCluster

logger = logging.getLogger(__name__)

_END_SECONDS = 60.0
_GRACE_SECONDS = 20.0
# Each worker has a slot to spare: for a server, and for a rank that comes back before its former self ends.
_CORES = 2
_SLOTS = 2 * _CORES
# A new driver now and then, so that what one leaves behind is seen.
_RUNS_A_DRIVER = 6
_DISK_BYTES = 8 << 20


class Runs:
    """A cluster and a driver for many runs, started again where a run has hurt them; all end by `deadline`."""

    def __init__(self, folder: Path, hosts: Hosts, deadline: float, out: Path) -> None:
        self.deadline = deadline
        self._out = out
        self._folder = folder
        self._hosts = hosts
        self._stack = ExitStack()
        self._cluster: StandaloneCluster | None = None
        self._driver: Driver | None = None
        self._clusters = self._drivers = self._fits = 0
        self._undisturbed: dict[tuple[str, bool], dict[str, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, scenario: Scenario) -> Record:
        """Run one scenario and judge it; raises OutOfTime where it would have to be given up for that."""
        record = Record(scenario)
        undisturbed = self._baseline(scenario.plan, shuffled=scenario.shuffled)
        cluster, driver = self._ready()
        before = shared_memory()
        with _disk(cluster.folder / f"checkpoint-{scenario.number}", needed=scenario.needs_disk) as disk:
            params = {**scenario.params, **({} if disk is None else {"checkpointDir": str(disk)})}
            slow = SLOW_ROW_MS if LOAD in scenario.stages else 0
            name = f"run-{scenario.number}"
            spec = FitSpec(name, shuffled=scenario.shuffled, params=params, slots=_SLOTS, slow_rows=slow)
            began = time.monotonic()
            fit = Disturbed(self, spec, scenario, record, disk)
            event = fit.follow(cluster, driver)
            left = [] if event is None else list(event["left"])
            if event is not None and event["event"] == INTERRUPTED:
                left += self._left_by_fit(before)
                event = self._again(fit.driver, spec, record)
                left += event["left"]
            record.seconds = time.monotonic() - began
        record.undisturbed = undisturbed["accuracy"]
        if event is not None:
            _take(record, event, undisturbed)
        hurt = record.outcome not in {FINISHED, REFUSED, INTERRUPTED}
        record.left = left + (self._leftovers(before) if not hurt else [])
        record.judge()
        if record.problems:
            _keep_logs(cluster.folder, self._out / f"run-{scenario.number}")
        if hurt or record.left or not cluster.alive():
            self._restart()
        return record

    def _again(self, driver: Driver, spec: FitSpec, record: Record) -> dict[str, Any]:
        """The same fit in the same session, after one that was interrupted; how it ended."""
        record.outcome = INTERRUPTED
        again = replace(spec, name=f"{spec.name}-again")
        driver.fit(again)
        event = self._undisturbed_end(driver, again.name)
        for ready in driver.told("ready", fit=again.name):
            record.due[str(ready["rank"])] = ready["rows"] * int(PLANS[record.scenario.plan]["epochs"])
        return event

    def new_driver(self) -> Driver:
        """A driver in place of one that was killed, once what that one had is gone."""
        assert self._cluster is not None
        assert self._driver is not None
        self._driver.__exit__(None, None, None)
        processes.await_gone(self._cluster.members(), _GRACE_SECONDS)
        return self._start_driver(self._cluster)

    def _baseline(self, plan: str, *, shuffled: bool) -> dict[str, Any]:
        """How an undisturbed fit of a plan ended; it is run once."""
        key = (plan, shuffled)
        if key not in self._undisturbed:
            _, driver = self._ready()
            name = f"undisturbed-{plan}-{'shuffled' if shuffled else 'direct'}"
            driver.fit(FitSpec(name, shuffled=shuffled, params=params_of(plan), slots=_SLOTS))
            event = self._undisturbed_end(driver, name)
            if event["event"] != FINISHED:
                raise RuntimeError(f"The undisturbed fit of {plan} did not finish: {event}")
            logger.info("%s: %.1f s, accuracy %.3f", name, event["seconds"], event["accuracy"])
            self._undisturbed[key] = event
        return self._undisturbed[key]

    def _undisturbed_end(self, driver: Driver, name: str) -> dict[str, Any]:
        left = self.deadline - time.monotonic()
        try:
            return driver.wait_for(*ENDS, fit=name, patience=min(RUN_SECONDS, left))
        except TimeoutError:
            if left < RUN_SECONDS:
                raise OutOfTime from None
            raise

    def _ready(self) -> tuple[StandaloneCluster, Driver]:
        if self._cluster is None:
            folder = self._folder / f"cluster-{self._clusters}"
            folder.mkdir()
            self._clusters += 1
            self._cluster = self._stack.enter_context(StandaloneCluster(folder, self._hosts, cores=_CORES))
        if self._driver is None:
            self._start_driver(self._cluster)
            self._fits = 0
        assert self._driver is not None
        self._fits += 1
        return self._cluster, self._driver

    def _start_driver(self, cluster: StandaloneCluster) -> Driver:
        self._drivers += 1
        self._driver = self._stack.enter_context(Driver(cluster, f"driver-{self._drivers}"))
        return self._driver

    def _left_by_fit(self, before: frozenset[str]) -> list[str]:
        """What is there a while after a fit has ended."""
        assert self._cluster is not None
        left: list[str] = []
        for _ in processes.ticks(_GRACE_SECONDS):
            left = left_by_fit(self._cluster, before)
            if not left:
                break
        return left

    def _leftovers(self, before: frozenset[str]) -> list[str]:
        """What a run has left behind."""
        assert self._driver is not None
        left = self._left_by_fit(before)
        if self._fits >= _RUNS_A_DRIVER or not self._driver.process.lives or left:
            left += self._end_driver()
        return left

    def _end_driver(self) -> list[str]:
        """Let the driver end by itself; what is there even so."""
        assert self._cluster is not None
        assert self._driver is not None
        left = []
        try:
            self._driver.leave(_END_SECONDS)
        except TimeoutError:
            left.append("the driver, which did not end")
        self._driver.__exit__(None, None, None)
        self._driver = None
        left += map(str, processes.await_gone(self._cluster.members(), _GRACE_SECONDS))
        return left + left_files(self._cluster)

    def _restart(self) -> None:
        self._stack.close()
        self._cluster = self._driver = None


def _take(record: Record, event: dict[str, Any], undisturbed: dict[str, Any]) -> None:
    """What the driver told at the end."""
    outcome = {"finished": FINISHED, "refused": REFUSED}.get(event["event"], WRONG)
    if outcome != FINISHED:
        record.message = f"{event['error']}: {event['message']}"
        if record.outcome == INTERRUPTED:
            record.problems.append("the next fit did not finish")
        record.outcome = WRONG if record.outcome == INTERRUPTED else outcome
        return
    record.outcome = INTERRUPTED if record.outcome == INTERRUPTED else FINISHED
    record.accuracy = event["accuracy"]
    record.contributed = event["contributed"]
    expected = int(PLANS[record.scenario.plan]["epochs"])
    if event["epochs"] != expected:
        record.problems.append(f"{event['epochs']} epochs in the history, not {expected}")
    if record.scenario.plan in SYNCHRONOUS:
        found, wanted = (np.load(each["parameters"]) for each in (event, undisturbed))
        record.difference = float(np.abs(found - wanted).max())


def _keep_logs(folder: Path, place: Path) -> None:
    """Copy what drivers, daemons and executors have written, under names that tell whose it is."""
    place.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("*.log"), *folder.glob("worker-*/*/*/stderr")]:
        shutil.copy(path, place / "-".join(path.relative_to(folder).parts))


@contextmanager
def _disk(folder: Path, *, needed: bool) -> Iterator[Path | None]:
    """A folder on a small file system of its own, where that can be mounted; otherwise a plain one."""
    if not needed:
        yield None
        return
    folder.mkdir()
    mounted = not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "chaos", str(folder)], check=False, capture_output=True
    ).returncode
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


def can_mount(folder: Path) -> bool:
    """Whether a small file system can be mounted, so that filling it hurts nobody."""
    probe = folder / "probe"
    with _disk(probe, needed=True):
        return probe.is_mount()
