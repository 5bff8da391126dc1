"""The one number that slices must share, added up from their parts. Runs on the driver; no I/O."""

from __future__ import annotations

# A host asks for one round after the other, and for the last again where it came back.
_KEPT = 4


class NormSums:
    """Each slice's part of the squared norm of its last rounds."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[int, float]] = {}

    def add(self, round_: int, rank: int, value: float, slices: int) -> float | None:
        """Take a part in; the sum in the order of ranks, once there are as many parts as slices."""
        own = self._parts.setdefault(rank, {})
        own.pop(round_, None)
        own[round_] = value
        while len(own) > _KEPT:
            del own[next(iter(own))]
        ranks = self.ranks(round_)
        return sum(self._parts[each][round_] for each in ranks) if len(ranks) >= slices else None

    def ranks(self, round_: int) -> list[int]:
        """Whose parts of that round are here."""
        return sorted(rank for rank, own in self._parts.items() if round_ in own)
