"""For how long a worker has heard nothing from the driver. Runs on workers; the time is given."""

from __future__ import annotations

# After so long a worker looks whether anybody still listens there, and then as often again.
LOOK_SECONDS = 5.0
# Silence grows no faster than this from one look to the next: a worker that stood still itself has heard nobody.
MOST_GAP_SECONDS = 2.0


class Silence:
    """Counts the seconds of a wait in which nothing was heard, without those in which this process stood still."""

    def __init__(self, now: float) -> None:
        self.begin(now)

    def begin(self, now: float) -> None:
        """A wait begins."""
        self._counted_to = now
        self.end()

    def end(self) -> None:
        """Something was heard."""
        self.seconds = 0.0
        self._look_at = LOOK_SECONDS

    def grow(self, now: float) -> bool:
        """Nothing was heard until now; whether it is time to look if anybody is there."""
        self.seconds += min(now - self._counted_to, MOST_GAP_SECONDS)
        self._counted_to = now
        if self.seconds < self._look_at:
            return False
        self._look_at = self.seconds + LOOK_SECONDS
        return True
