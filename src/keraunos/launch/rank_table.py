"""What each rank has done with its time, and which of them is slow. Runs on the driver."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from keraunos.exchange.tally import Tally

SLOW = 1.5
# Fewer steps, or less time, may be chance.
ENOUGH_STEPS = 30
ENOUGH_SECONDS = 5.0


@dataclass(frozen=True)
class RankReport:
    """One rank after a fit.

    Attributes:
        rows: the rows that it has read, in all epochs.
        steps: the steps that it has taken, in all epochs.
        seconds_per_step: of its own work, without waiting for others. The first round, which compiles the model, is
            left out.
        waiting: the share of its time, without the first round, in which it waited for others.
        returns: how often it was lost and came back.
        bytes_sent: how many bytes it has sent over sockets.
        bytes_received: how many bytes it has received so.
        bytes_shared: how many bytes went through memory that it shares with servers of its host, both ways.
    """

    rank: int
    host: str
    rows: int
    steps: int
    seconds_per_step: float
    waiting: float
    returns: int
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_shared: int = 0


@dataclass(frozen=True)
class LostRows:
    """Rows that were missing from an epoch on, because their worker was lost and the others went on without it."""

    rank: int
    host: str
    epoch: int
    rows_per_epoch: int


class RankTable(Sequence[RankReport]):
    """All ranks of a fit; prints as a table."""

    def __init__(self, reports: Sequence[RankReport] = ()) -> None:
        self._reports = tuple(reports)

    @overload
    def __getitem__(self, index: int) -> RankReport: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RankReport]: ...
    def __getitem__(self, index: int | slice) -> RankReport | Sequence[RankReport]:
        return self._reports[index]

    def __len__(self) -> int:
        return len(self._reports)

    def __iter__(self) -> Iterator[RankReport]:
        return iter(self._reports)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head = ("rank", "host", "rows", "steps", "s/step", "waiting", "returns", "sent", "received", "shared")
        lines = [
            (
                str(each.rank),
                each.host,
                str(each.rows),
                str(each.steps),
                f"{each.seconds_per_step:.4g}",
                f"{each.waiting:.0%}",
                str(each.returns),
                *map(_in_units, (each.bytes_sent, each.bytes_received, each.bytes_shared)),
            )
            for each in self._reports
        ]
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *lines)
        )


def report_of(rank: int, host: str, tally: Tally | None, rows: int, returns: int) -> RankReport:
    """One line of the table."""
    tally = tally or Tally()
    spent = tally.busy + tally.waited
    return RankReport(
        rank=rank,
        host=host,
        rows=rows,
        steps=tally.steps,
        seconds_per_step=tally.busy / tally.timed if tally.timed else 0.0,
        waiting=tally.waited / spent if spent else 0.0,
        returns=returns,
        bytes_sent=tally.bytes_sent,
        bytes_received=tally.bytes_received,
        bytes_shared=tally.bytes_shared,
    )


def _in_units(count: float) -> str:
    """A number of bytes with at most three digits before its point."""
    units = ["B", "kB", "MB", "GB", "TB"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{count:.3g} {units[0]}"


@dataclass(frozen=True)
class Straggler:
    """A rank that is slower than the others: seconds per step, theirs, and what it has cost so far."""

    rank: int
    seconds: float
    median: float
    cost: float


def stragglers(tallies: Mapping[int, Tally]) -> list[Straggler]:
    """The ranks whose steps take much longer than the median, as far as there are enough to be sure."""
    sure = {
        rank: tally
        for rank, tally in tallies.items()
        if tally.timed >= ENOUGH_STEPS and tally.busy + tally.waited >= ENOUGH_SECONDS
    }
    if len(sure) < 2:
        return []
    steps = {rank: tally.busy / tally.timed for rank, tally in sure.items()}
    # Of two, the faster one is what the other is compared with.
    median = statistics.median_low(steps.values())
    return [
        Straggler(rank, each, median, (each - median) * sure[rank].timed)
        for rank, each in sorted(steps.items())
        if each > SLOW * median
    ]
