"""Running scenarios on a cluster: one after the other, each with an end, whatever happens."""

from __future__ import annotations

import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from chaos.expectations import FINISHED, HANG, REFUSED, WRONG
from chaos.faults import Missed, Strike
from chaos.records import Record
from chaos.scenarios import DISK, DRIVER, KILLS, PLANS, SERVER, SYNCHRONOUS, Scenario, params_of
from tests.clusters import processes
from tests.clusters.drivers import ENDS, Driver
from tests.clusters.fit_spec import FitSpec
from tests.clusters.hosts import Hosts
from tests.clusters.standalone import StandaloneCluster

logger = logging.getLogger(__name__)

# A fit that has not ended by then hangs. Members give each other up after a minute, and that must fit in.
RUN_SECONDS = 200.0
_END_SECONDS = 60.0
_GRACE_SECONDS = 20.0
# Each worker has a slot to spare: for a server, and for a rank that comes back before its former self ends.
_CORES = 2
_SLOTS = 2 * _CORES
# A new driver now and then, so that what one leaves behind is seen.
_RUNS_A_DRIVER = 6
_DISK_BYTES = 8 << 20


class OutOfTime(Exception):  # noqa: N818 - no error
    """The time for all runs was over before one of them ended."""


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
        with _disk(
            cluster.folder / f"checkpoint-{scenario.number}", needed=bool(scenario.kinds & {DRIVER, DISK})
        ) as disk:
            params = {**scenario.params, **({} if disk is None else {"checkpointDir": str(disk)})}
            spec = FitSpec(f"run-{scenario.number}", shuffled=scenario.shuffled, params=params, slots=_SLOTS)
            began = time.monotonic()
            event = _Disturbed(self, spec, scenario, record, disk).follow(cluster, driver)
            record.seconds = time.monotonic() - began
        record.undisturbed = undisturbed["accuracy"]
        if event is not None:
            _take(record, event, undisturbed)
        hurt = record.outcome not in {FINISHED, REFUSED}
        record.left = self._leftovers() if not hurt else []
        record.judge()
        if record.problems:
            _keep_logs(cluster.folder, self._out / f"run-{scenario.number}")
        if hurt or record.left or not cluster.alive():
            self._restart()
        return record

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

    def _leftovers(self) -> list[str]:
        """What a run has left behind."""
        assert self._cluster is not None
        assert self._driver is not None
        left: list[str] = []
        for _ in processes.ticks(_GRACE_SECONDS):
            found = [each for each in self._cluster.members() if each.name.startswith("keraunos-")]
            left = [f"{each} (child of {each.parent})" for each in found]
            if not left:
                break
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
        left += [str(path) for path in self._cluster.temporary.glob("keraunos*") if "cache" not in path.name]
        return left

    def _restart(self) -> None:
        self._stack.close()
        self._cluster = self._driver = None


class _Disturbed:
    """One fit, and what happens to it."""

    def __init__(self, runs: Runs, spec: FitSpec, scenario: Scenario, record: Record, disk: Path | None) -> None:
        self._runs = runs
        self._spec = spec
        self._scenario = scenario
        self._record = record
        self._disk = disk
        self._strikes: list[Strike | None] = []
        self._begin: float | None = None

    def follow(self, cluster: StandaloneCluster, driver: Driver) -> dict[str, Any] | None:
        """Fit and disturb until there is an end, which is told; or none in time."""
        driver.fit(self._spec)
        pending = list(self._scenario.faults)
        nobody = threading.Event()
        left = self._runs.deadline - time.monotonic()
        try:
            for _ in processes.ticks(min(RUN_SECONDS, left), pause=0.02):
                for strike in self._strikes:
                    if strike is not None and strike.is_open and time.monotonic() >= strike.lasts_until:
                        strike.undo()
                ended = driver.told(*ENDS, fit=self._spec.name)
                if ended and not any(strike is not None and strike.is_open for strike in self._strikes):
                    return ended[0]
                if not driver.process.lives:
                    self._record.message = f"The driver ended by itself. {driver.log[-2000:]}"
                    return None
                laps = driver.told("lap", fit=self._spec.name) if self._begin is None else []
                self._begin = laps[0]["at"] if laps else self._begin
                if pending and not ended and _reached(driver, self._spec.name, pending[0].epoch):
                    nobody.wait(pending[0].delay)
                    driver = self._strike(pending.pop(0), cluster, driver)
            if left < RUN_SECONDS:
                raise OutOfTime
            self._record.outcome = HANG
            self._record.message = f"No end after {RUN_SECONDS:.0f} s. {_last(driver)}"
            return None
        finally:
            for strike in self._strikes:
                if strike is not None:
                    strike.undo()
            self._note(driver)

    def _strike(self, fault: Any, cluster: StandaloneCluster, driver: Driver) -> Driver:
        try:
            self._strikes.append(Strike(fault, cluster, driver, self._disk))
        except Missed:
            self._strikes.append(None)
            return driver
        if fault.kind != DRIVER:
            return driver
        resumed = self._runs.new_driver()
        resumed.fit(self._spec)
        return resumed

    def _note(self, driver: Driver) -> None:
        """When faults struck, and when their ranks went on."""
        begin = time.monotonic() if self._begin is None else self._begin
        for strike in self._strikes:
            self._record.ranks.append(None if strike is None else strike.rank)
            self._record.struck.append(None if strike is None else round(strike.at - begin, 2))
            self._record.recovery.append(None if strike is None else _recovery(driver, self._spec.name, strike))
        for event in driver.told("ready", fit=self._spec.name):
            self._record.due[str(event["rank"])] = event["rows"] * int(PLANS[self._scenario.plan]["epochs"])


def _take(record: Record, event: dict[str, Any], undisturbed: dict[str, Any]) -> None:
    """What the driver told at the end."""
    record.outcome = {"finished": FINISHED, "refused": REFUSED}.get(event["event"], WRONG)
    if record.outcome != FINISHED:
        record.message = f"{event['error']}: {event['message']}"
        return
    record.accuracy = event["accuracy"]
    record.contributed = event["contributed"]
    expected = int(PLANS[record.scenario.plan]["epochs"])
    if event["epochs"] != expected:
        record.problems.append(f"{event['epochs']} epochs in the history, not {expected}")
    if record.scenario.plan in SYNCHRONOUS:
        found, wanted = (np.load(each["parameters"]) for each in (event, undisturbed))
        record.difference = float(np.abs(found - wanted).max())


def _recovery(driver: Driver, fit: str, strike: Strike) -> float | None:
    """Seconds from a fault to the next sign that whom it hit goes on."""
    fault = strike.fault
    since = strike.lasts_until
    facts = {} if fault.kind in {SERVER, DRIVER, DISK} else {"rank": strike.rank}
    if fault.kind in KILLS and fault.kind not in {SERVER, DRIVER}:
        back = driver.told("heard", fit=fit, kind="hello", since=strike.at, **facts)
        if not back:
            return None
        since = back[0]["at"]
    signs = [
        event["at"]
        for event in driver.told("heard", fit=fit, since=since, **facts)
        if event["kind"] in {"report", "lap", "done"}
    ]
    return round(signs[0] - strike.at, 2) if signs else None


def _reached(driver: Driver, fit: str, epoch: int) -> bool:
    return any(event["epoch"] >= epoch for event in driver.told("lap", fit=fit))


def _last(driver: Driver) -> str:
    return f"The last that was told: {driver.events[-3:]}. The end of the driver's log: {driver.log[-2000:]}"


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
