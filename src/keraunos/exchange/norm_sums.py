"""The one number that slices must share, added up from their parts. Runs on the driver; no I/O."""

from __future__ import annotations


class NormSums:
    """Each slice's part of a round's squared norm, until all are here."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[int, float]] = {}

    def add(self, round_: int, rank: int, value: float, slices: int) -> float | None:
        """Take a part in; the sum in the order of ranks, once there are as many parts as slices."""
        parts = self._parts.setdefault(round_, {})
        parts[rank] = value
        if len(parts) < slices:
            return None
        # Kept for the round that closes: a host that came back may ask again.
        self._parts = {number: each for number, each in self._parts.items() if number >= round_}
        return sum(parts[each] for each in sorted(parts))

    def ranks(self, round_: int) -> list[int]:
        """Whose parts of that round are here."""
        return sorted(self._parts.get(round_, ()))
