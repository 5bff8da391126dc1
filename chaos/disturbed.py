"""One fit, and what happens to it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.expectations import HANG
from chaos.faults import Missed, Strike
from chaos.records import Record
from chaos.scenarios import DRIVER, KILLS, PLANS, SERVER, WITHOUT_RANK, WORKERS, Fault, Scenario
from tests.clusters import processes
from tests.clusters.drivers import ENDS, Driver
from tests.clusters.fit_spec import HELD, LOAD, TRAIN, FitSpec
from tests.clusters.standalone import StandaloneCluster

if TYPE_CHECKING:
    from chaos.runs import Runs

# A fit that has not ended by then hangs. Members give each other up after a minute, and that must fit in.
RUN_SECONDS = 200.0
# A driver that is held waits so long for whom the fault is to hit.
_TARGET_SECONDS = 15.0


class OutOfTime(Exception):  # noqa: N818 - no error
    """The time for all runs was over before one of them ended."""


class Disturbed:
    """One fit, disturbed; `driver` is the one that it ended with."""

    def __init__(self, runs: Runs, spec: FitSpec, scenario: Scenario, record: Record, disk: Path | None) -> None:
        self._runs = runs
        self._spec = replace(spec, holds=tuple(each for each in HELD if each in scenario.stages))
        self._scenario = scenario
        self._record = record
        self._disk = disk
        self._strikes: list[Strike | None] = []
        self._begin = time.monotonic()

    def follow(self, cluster: StandaloneCluster, driver: Driver) -> dict[str, Any] | None:
        """Fit and disturb until there is an end, which is told; or none in time."""
        self.driver = driver
        driver.fit(self._spec)
        pending = list(self._scenario.faults)
        left = self._runs.deadline - time.monotonic()
        try:
            for _ in processes.ticks(min(RUN_SECONDS, left), pause=0.02):
                self._undo_what_is_over()
                ended = self.driver.told(*ENDS, fit=self._spec.name)
                if ended and not any(strike is not None and strike.is_open for strike in self._strikes):
                    return ended[0]
                if not self.driver.process.lives:
                    self._record.message = f"The driver ended by itself. {self.driver.log[-2000:]}"
                    return None
                if not ended:
                    pending = [fault for fault in pending if not self._comes(fault, cluster)]
            if left < RUN_SECONDS:
                raise OutOfTime
            self._record.outcome = HANG
            self._record.message = f"No end after {RUN_SECONDS:.0f} s. {_last(self.driver)}"
            return None
        finally:
            for strike in self._strikes:
                if strike is not None:
                    strike.undo()
            self._note()

    def _undo_what_is_over(self) -> None:
        for strike in self._strikes:
            if strike is not None and strike.is_open and time.monotonic() >= strike.lasts_until:
                strike.undo()

    def _comes(self, fault: Fault, cluster: StandaloneCluster) -> bool:
        """Whether a fault's moment has come, and it has struck, or there was nobody to hit."""
        since = _reached(self.driver, self._spec.name, fault)
        if since is None:
            return False
        threading.Event().wait(fault.delay)
        try:
            strike = Strike(fault, cluster, self.driver, self._disk)
        except Missed:
            if fault.stage in HELD and time.monotonic() - since < _TARGET_SECONDS:
                return False
            strike = None
        self._strikes.append(strike)
        self._record.hit.append(fault)
        if fault.stage in HELD:
            self._spec = replace(self._spec, holds=tuple(each for each in self._spec.holds if each != fault.stage))
            self.driver.go_on()
        if fault.kind == DRIVER and strike is not None:
            self.driver = self._runs.new_driver()
            self.driver.fit(self._spec)
        return True

    def _note(self) -> None:
        """When faults struck, and when their ranks went on."""
        for strike in self._strikes:
            self._record.ranks.append(None if strike is None else strike.rank)
            self._record.struck.append(None if strike is None else round(strike.at - self._begin, 2))
            self._record.recovery.append(None if strike is None else _recovery(self.driver, self._spec.name, strike))
        for event in self.driver.told("ready", fit=self._spec.name):
            self._record.due[str(event["rank"])] = event["rows"] * int(PLANS[self._scenario.plan]["epochs"])


def _reached(driver: Driver, fit: str, fault: Fault) -> float | None:
    """Since when a fit has been where a fault is to come."""
    if fault.stage in HELD:
        told = driver.told("stage", fit=fit, stage=fault.stage)
    elif fault.stage == TRAIN:
        told = [event for event in driver.told("lap", fit=fit) if event["epoch"] >= fault.epoch]
    else:
        assert fault.stage == LOAD
        heard = driver.told("heard", fit=fit, kind="hello")
        everyone = {event["rank"] for event in heard} >= set(range(WORKERS))
        told = heard[-1:] if everyone else []
    return told[0]["at"] if told else None


def _recovery(driver: Driver, fit: str, strike: Strike) -> float | None:
    """Seconds from a fault to the next sign that whom it hit goes on."""
    fault = strike.fault
    since = strike.lasts_until
    facts = {} if fault.kind in WITHOUT_RANK else {"rank": strike.rank}
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


def _last(driver: Driver) -> str:
    return f"The last that was told: {driver.events[-3:]}. The end of the driver's log: {driver.log[-2000:]}"
