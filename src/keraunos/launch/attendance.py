"""Who takes part, who is away, and who has been away for too long. Runs on the driver; no I/O, the time is given.

A member gives a sign of life every two seconds, whatever it does. One that has given none for some seconds is away:
its process was lost and will be started again, or it stands still, or the network does. The others wait for it, as long
as the job's patience lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from keraunos.exchange.pulse import PULSE_SECONDS

AWAY_SECONDS = 3 * PULSE_SECONDS
# Time passes no faster than this from one look to the next: a driver that stood still itself has heard nobody.
MOST_GAP_SECONDS = 1.0


class Turn(Enum):
    """What has happened to a member."""

    AWAY = "away"
    BACK = "back"
    LOST = "lost"


@dataclass(frozen=True)
class Change:
    """What has happened to a member, and for how long it has not been heard."""

    rank: int
    turn: Turn
    seconds: float


@dataclass
class _Seen:
    signs: int
    heard: float
    away: bool = False


class Attendance:
    """The members as they were heard; `patience` is for how many seconds one may be away."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._away_after = min(AWAY_SECONDS, patience)
        self._looked: float | None = None
        self._time = 0.0
        self._seen: dict[int, _Seen] = {}
        self._lost: set[int] = set()

    @property
    def away(self) -> list[int]:
        """The members that are away now."""
        return sorted(rank for rank, seen in self._seen.items() if seen.away)

    def look(self, now: float, signs: Mapping[int, int], expected: Iterable[int]) -> list[Change]:
        """What has changed for the members that are expected, of whom so many signs were heard; each change once."""
        gap = 0.0 if self._looked is None else now - self._looked
        self._time += min(max(gap, 0.0), MOST_GAP_SECONDS)
        self._looked = now
        if gap >= self._away_after:
            # Whatever stopped the driver may have stopped the others: they get their whole patience to be heard again.
            for seen in self._seen.values():
                seen.heard = self._time
        wanted = set(expected) - self._lost
        # One that is not waited for any more, because it has come to its end, has come back before.
        ended = [rank for rank, seen in self._seen.items() if seen.away and rank not in wanted]
        changes = [change for rank in ended for change in self._see(rank, signs.get(rank, 0))]
        self._seen = {rank: seen for rank, seen in self._seen.items() if rank in wanted}
        return changes + [change for rank in sorted(wanted) for change in self._see(rank, signs.get(rank, 0))]

    def _see(self, rank: int, signs: int) -> list[Change]:
        seen = self._seen.setdefault(rank, _Seen(signs, self._time))
        silent = self._time - seen.heard
        if signs != seen.signs:
            self._seen[rank] = _Seen(signs, self._time)
            return [Change(rank, Turn.BACK, silent)] if seen.away else []
        if silent >= self._patience:
            self._lost.add(rank)
            del self._seen[rank]
            return [Change(rank, Turn.LOST, silent)]
        if silent >= self._away_after and not seen.away:
            seen.away = True
            return [Change(rank, Turn.AWAY, silent)]
        return []
