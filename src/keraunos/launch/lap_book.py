"""What the workers have reported, lap by lap, until a lap is whole. Runs on the driver; no I/O, no clock.

Where workers wait for each other all of them run the same laps. Where they do not, each has its own: one with fewer
rows has fewer laps in an epoch, or more epochs in as many steps, and some run ahead. A lap of an epoch is closed once
every rank that still trains has reported it, or an end of that epoch before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keraunos.learners.home_model import MetricStates, State


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


@dataclass
class _Measured:
    """Metric states as they arrive; those of validation rows by rank, because the newest counts."""

    states: list[State] = field(default_factory=list)
    validation: dict[int, State] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    step: int = 0


@dataclass(frozen=True)
class _End:
    """Where a rank's part of an epoch ended, and whether that was the whole of it."""

    index: int
    whole: bool


class LapBook:
    """The laps that are open. `reader` is set before the first report comes."""

    def __init__(self) -> None:
        self.reader: MetricStates | None = None
        self._at = (0, 0)
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

    def measure(self, body: Mapping[str, Any], state: State) -> None:
        """A rank has measured something on its way through a lap."""
        self._add(self._lap(body), state)

    def end(self, rank: int, body: Mapping[str, Any], state: State, validation: State) -> None:
        """A rank has ended a lap."""
        lap = self._lap(body)
        self._add(lap, state)
        if validation:
            lap.validation[rank] = validation
        lap.ranks.add(rank)
        lap.step = max(lap.step, int(body["step"]))
        epoch, index = int(body["epoch"]), int(body["lap"])
        self._reached[rank] = (epoch, index)
        if body["ends_epoch"] or body["final"]:
            self._ends.setdefault(epoch, {})[rank] = _End(index, whole=bool(body["ends_epoch"]))
        if body["final"]:
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
        self._take_in(lap)
        closed = ClosedLap(
            number=number,
            epoch=epoch,
            step=lap.step,
            ends_epoch=over and all(ends[rank].whole for rank in on_it),
            over=over,
            last=over and not any(each.ranks for each in self._open.values()) and expected <= self._finished,
            logs=self._logs(lap.states),
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

    def so_far(self) -> dict[str, float]:
        """The metrics of the open epoch, without validation."""
        lap = self._open.get(self._at)
        states = [*self._epoch.states, *([] if lap is None else lap.states)]
        return {} if self.reader is None else self.reader.read(states)

    def _lap(self, body: Mapping[str, Any]) -> _Measured:
        return self._open.setdefault((int(body["epoch"]), int(body["lap"])), _Measured())

    def _has_reached(self, rank: int) -> bool:
        epoch, index = self._at
        end = self._ends.get(epoch, {}).get(rank)
        return self._reached.get(rank, (-1, 0)) >= self._at or (end is not None and end.index < index)

    def _add(self, lap: _Measured, state: State) -> None:
        """Take a state in; one merged state stands for all before it, so that long laps cost no more."""
        if self.reader is not None and state:
            lap.states = [self.reader.merge([*lap.states, state])]

    def _take_in(self, lap: _Measured) -> None:
        for state in lap.states:
            self._add(self._epoch, state)
        self._epoch.validation |= lap.validation

    def _logs(self, states: Sequence[State]) -> dict[str, float]:
        if self.reader is None:
            return {}
        logs = self.reader.read(states)
        if self._epoch.validation:
            validation = self.reader.read(list(self._epoch.validation.values()))
            logs |= {f"val_{name}": value for name, value in validation.items()}
        return logs
