"""Whether a training still moves. Runs on the driver; no I/O, the time is given."""

from __future__ import annotations

from collections.abc import Hashable

from keraunos.launch.attendance import MOST_GAP_SECONDS


class Watchdog:
    """Barks once a stall: when nothing has changed for `after` seconds although somebody waits."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._looked: float | None = None
        self._still = 0.0
        self._place: Hashable = None
        self._barked = False

    @property
    def still(self) -> float:
        """For how many seconds nothing has changed."""
        return self._still

    def look(self, now: float, place: Hashable, *, waiting: bool) -> bool:
        """Whether a stall is to be told; `place` is where everybody is, and differs when somebody has moved."""
        gap = 0.0 if self._looked is None else now - self._looked
        self._looked = now
        if place != self._place or not waiting:
            self._place, self._still, self._barked = place, 0.0, False
            return False
        # A driver that stood still itself has seen nobody move.
        self._still += min(max(gap, 0.0), MOST_GAP_SECONDS)
        if self._barked or self._still < self._after:
            return False
        self._barked = True
        return True
