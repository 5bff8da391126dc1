"""What the workers have reported, lap by lap, until a lap is whole. Runs on the driver; no I/O, no clock.

Where workers wait for each other all of them run the same laps. Where they do not, each has its own: one with fewer
rows has fewer laps in an epoch, or more epochs in as many steps, and some run ahead. A lap of an epoch is closed once
every rank that still trains has reported it, or an end of that epoch before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from keraunos.exchange import messages
from keraunos.learners.home_model import MetricStates, State
from keraunos.telemetry.charts import VALIDATION

_UNMEASURED = {"loss": math.nan}


@dataclass(frozen=True)
class ClosedLap:
    """A lap that everyone has reported.

    `ends_epoch` says that every row of the epoch was used, `over` that nobody has more of it to come, and `last` that
    nobody has anything to come. The other fields are those of `launch.hooks.Lap`.
    """

    number: int
    epoch: int
    step: int
    ends_epoch: bool
    over: bool
    last: bool
    logs: dict[str, float]
    epoch_logs: dict[str, float]

    def unmeasured(self) -> ClosedLap:
        """The same lap as the last of all, and with no row of its epoch in the metrics."""
        logs = _UNMEASURED | {name: value for name, value in self.logs.items() if name.startswith(VALIDATION)}
        return replace(self, last=True, logs=logs, epoch_logs=dict(logs))


@dataclass
class _Measured:
    """Metric states as they arrive, by rank; of those of validation rows the newest counts.

    `so_far` is what a rank has measured in a part of the lap that it has not ended. When somebody says so is a matter
    of time, and sums of floats depend on where they are cut: only whole parts are added up for good.
    """

    states: dict[int, State] = field(default_factory=dict)
    validation: dict[int, State] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    step: int = 0
    so_far: dict[int, State] = field(default_factory=dict)


@dataclass(frozen=True)
class _End:
    """Where a rank's part of an epoch ended, and whether that was the whole of it."""

    index: int
    whole: bool


class LapBook:
    """The laps that are open. `reader` is set before the first report comes."""

    def __init__(self, first_epoch: int = 0) -> None:
        self.reader: MetricStates | None = None
        self._at = (first_epoch, 0)
        self._closed = 0
        self._open: dict[tuple[int, int], _Measured] = {}
        self._epoch = _Measured()
        self._reached: dict[int, tuple[int, int]] = {}
        self._ends: dict[int, dict[int, _End]] = {}
        self._finished: set[int] = set()
        self._forgotten = False

    @property
    def epoch(self) -> int:
        """The epoch that is open."""
        return self._at[0]

    def measure(self, rank: int, report: messages.Report, state: State) -> None:
        """A rank has measured something on its way through a lap."""
        lap = self._lap(report.epoch, report.lap)
        if report.so_far:
            lap.so_far[rank] = state
        else:
            self._add(lap, rank, state)

    def returns(self, rank: int) -> None:
        """A rank was lost and is back: it measures afresh, and what it had measured until then counts."""
        for lap in self._open.values():
            self._add(lap, rank, lap.so_far.get(rank, []))

    def end(self, rank: int, ended: messages.Lap, state: State, validation: State) -> None:
        """A rank has ended a lap."""
        lap = self._lap(ended.epoch, ended.lap)
        self._add(lap, rank, state)
        if ended.skipped and not ended.trained:
            lap.states.pop(rank, None)
        if validation:
            lap.validation[rank] = validation
        lap.ranks.add(rank)
        lap.step = max(lap.step, ended.step)
        self._reached[rank] = (ended.epoch, ended.lap)
        if ended.ends_epoch or ended.final:
            self._ends.setdefault(ended.epoch, {})[rank] = _End(ended.lap, whole=ended.ends_epoch)
        if ended.final:
            self._finished.add(rank)

    def close(self, expected: set[int]) -> ClosedLap | None:
        """The next lap, once every rank that is expected to go on has reached it; `None` before."""
        lap = self._open.get(self._at, _Measured())
        # Where one that was lost would have ended a lap by itself, the epoch is over for the others.
        ended = lap.ranks or (self._forgotten and self._ends.get(self._at[0]))
        if not ended or not all(self._has_reached(rank) for rank in expected):
            return None
        number, (epoch, index) = self._closed, self._at
        ends = self._ends.get(epoch, {})
        on_it = expected | ends.keys() | {rank for rank, place in self._reached.items() if place[0] == epoch}
        over = all(rank in ends and ends[rank].index <= index for rank in on_it)
        self._open.pop(self._at, None)
        states = self._take_in(lap)
        closed = ClosedLap(
            number=number,
            epoch=epoch,
            step=lap.step,
            ends_epoch=over and all(ends[rank].whole for rank in on_it),
            over=over,
            last=over and not any(each.ranks for each in self._open.values()) and expected <= self._finished,
            logs=self._logs(states),
            epoch_logs=self._logs(self._epoch.states),
        )
        self._closed += 1
        self._at = (epoch + 1, 0) if over else (epoch, index + 1)
        if over:
            self._epoch = _Measured()
            self._ends.pop(epoch, None)
        return closed

    def forget(self, rank: int) -> None:
        """Expect nothing more of a rank; what it has measured counts."""
        self._reached.pop(rank, None)
        self._forgotten = True

    def cut(self, step: int) -> ClosedLap:
        """The open lap as far as it was reported, where training ends within it after so many steps."""
        lap = self._open.pop(self._at, _Measured())
        states = self._take_in(lap)
        return ClosedLap(
            number=self._closed,
            epoch=self._at[0],
            step=step,
            ends_epoch=False,
            over=True,
            last=True,
            logs=self._logs(states) or dict(_UNMEASURED),
            epoch_logs=self._logs(self._epoch.states) or dict(_UNMEASURED),
        )

    def so_far(self) -> dict[str, float]:
        """The metrics of the open epoch, without validation."""
        lap = self._open.get(self._at)
        states = [*self._epoch.states.values(), *([] if lap is None else self._all(lap).values())]
        return {} if self.reader is None else self.reader.read(states)

    def copy(self) -> LapBook:
        """The book as it is now; what is entered later into one is not in the other."""
        twin = LapBook()
        twin.go_on_from(*self.keep())
        return twin

    def catch_up(self, rank: int, with_: LapBook) -> None:
        """Take over what another copy knows of a rank's open laps."""
        for place, lap in with_._open.items():
            states = with_._all(lap)
            if rank in states:
                self._open.setdefault(place, _Measured()).states[rank] = states[rank]

    def keep(self) -> tuple[dict[str, Any], list[Any]]:
        """The book as plain data and arrays."""
        arrays: list[Any] = []
        laps = [
            {
                "place": list(place),
                "step": lap.step,
                "ranks": sorted(lap.ranks),
                "states": _put(self._all(lap), arrays),
                "validation": _put(lap.validation, arrays),
            }
            for place, lap in sorted(self._open.items())
        ]
        ends = [(epoch, rank, end) for epoch, each in self._ends.items() for rank, end in each.items()]
        facts = {
            "at": list(self._at),
            "closed": self._closed,
            "laps": laps,
            "epoch": {"states": _put(self._epoch.states, arrays), "validation": _put(self._epoch.validation, arrays)},
            "reached": [[rank, list(place)] for rank, place in self._reached.items()],
            "ends": [[epoch, rank, end.index, end.whole] for epoch, rank, end in ends],
            "finished": sorted(self._finished),
        }
        return facts, arrays

    def go_on_from(self, facts: Mapping[str, Any], arrays: Sequence[Any]) -> None:
        """Be the book that was kept."""
        rest = iter(arrays)
        self._at = (int(facts["at"][0]), int(facts["at"][1]))
        self._closed = int(facts["closed"])
        for each in facts["laps"]:
            self._open[int(each["place"][0]), int(each["place"][1])] = _Measured(
                _take(each["states"], rest), _take(each["validation"], rest), set(each["ranks"]), int(each["step"])
            )
        self._epoch = _Measured(_take(facts["epoch"]["states"], rest), _take(facts["epoch"]["validation"], rest))
        self._reached = {int(rank): (int(place[0]), int(place[1])) for rank, place in facts["reached"]}
        for epoch, rank, index, whole in facts["ends"]:
            self._ends.setdefault(int(epoch), {})[int(rank)] = _End(int(index), whole=bool(whole))
        self._finished = set(facts["finished"])

    def prolong(self) -> None:
        """There is more to come than those thought who said that they had finished."""
        self._finished.clear()

    def _lap(self, epoch: int, index: int) -> _Measured:
        return self._open.setdefault((epoch, index), _Measured())

    def _has_reached(self, rank: int) -> bool:
        epoch, index = self._at
        end = self._ends.get(epoch, {}).get(rank)
        return self._reached.get(rank, (-1, 0)) >= self._at or (end is not None and end.index < index)

    def _add(self, lap: _Measured, rank: int, state: State) -> None:
        """Take a state in; one merged state stands for all before it, so that long laps cost no more."""
        lap.so_far.pop(rank, None)
        if self.reader is not None and state:
            lap.states[rank] = self.reader.merge([lap.states[rank], state] if rank in lap.states else [state])

    def _all(self, lap: _Measured) -> dict[int, State]:
        """What was measured up to now, by rank; where a rank is lost that is all there is."""
        if self.reader is None:
            return dict(lap.states)
        merged = {
            rank: self.reader.merge([lap.states[rank], state] if rank in lap.states else [state])
            for rank, state in lap.so_far.items()
            if state
        }
        return {**lap.states, **merged}

    def _take_in(self, lap: _Measured) -> dict[int, State]:
        """Add a lap to its epoch; its states by rank."""
        states = self._all(lap)
        for rank, state in states.items():
            self._add(self._epoch, rank, state)
        self._epoch.validation |= lap.validation
        return states

    def _logs(self, measured: Mapping[int, State]) -> dict[str, float]:
        if self.reader is None:
            return {}
        # In the order of ranks, so that two runs add up to the same bits.
        logs = self.reader.read([measured[rank] for rank in sorted(measured)])
        if self._epoch.validation:
            validation = self.reader.read([self._epoch.validation[rank] for rank in sorted(self._epoch.validation)])
            logs |= {f"{VALIDATION}{name}": value for name, value in validation.items()}
        return logs


def _put(states: Mapping[int, State], arrays: list[Any]) -> list[list[int]]:
    """Put the arrays of some states behind the others; whose they are, and how many."""
    for state in states.values():
        arrays.extend(state)
    return [[rank, len(state)] for rank, state in states.items()]


def _take(counted: Sequence[Sequence[int]], arrays: Iterator[Any]) -> dict[int, State]:
    return {int(rank): list(islice(arrays, int(count))) for rank, count in counted}
