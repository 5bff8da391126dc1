"""Short messages through shared memory, for workers of one host that meet every few hundred microseconds.

Runs on workers that host slices of a synchronous plan. A round between such workers is two short messages each way;
over sockets they pass through four threads that have to be woken up. Here the sender writes a few numbers and then
the round, and the receiver, who is looking for messages anyway, finds them. A receiver that has gone to sleep says so
and gets the message over its socket as well.

What makes this safe is that a processor shows its writes to others in the order in which they were made. Those of the
x86 family do; elsewhere there are no doorbells, and everything goes over sockets.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any, Self

from keraunos.exchange.messages import Push
from keraunos.exchange.shared_memory import SharedVector

MOST_DENOMINATORS = 5
# The round, the rows and how many denominators, then those; one line of the processor's cache.
_WIDTH = 8


class Doorbells:
    """One bell for each pair of a rank and a slice, one for each slice's results, and who is asleep."""

    def __init__(self, region: SharedVector, ranks: Sequence[int]) -> None:
        self._region = region
        self._places = {rank: place for place, rank in enumerate(ranks)}
        count = len(ranks)
        bells = region.vector.reshape(count + 2, count, _WIDTH)
        self._pushed = bells[:count]
        self._results = bells[count]
        self._sleeping = bells[count + 1]

    @classmethod
    def create(cls, ranks: Sequence[int]) -> SharedVector | None:
        """Memory for the bells of these ranks, each of which hosts a slice; `None` where there can be none."""
        if platform.machine().lower() not in {"x86_64", "amd64"}:
            return None
        return SharedVector.create((len(ranks) + 2) * len(ranks) * _WIDTH, "float64")

    @classmethod
    def open(cls, offer: Mapping[str, Any] | None, ranks: Sequence[int]) -> Self | None:
        """The bells that were offered, or `None` where they cannot be reached."""
        region = SharedVector.open(offer) if offer else None
        return None if region is None else cls(region, ranks)

    def close(self) -> None:
        """Give the memory back."""
        del self._pushed, self._results, self._sleeping
        self._region.close()

    def push(self, host: int, rank: int, round_: int, denominators: Sequence[float | None], rows: int) -> bool:
        """Say that a rank's contribution lies ready for a host's slice; `False` where it must be said at length."""
        if len(denominators) > MOST_DENOMINATORS or any(each is None for each in denominators):
            return False
        bell = self._pushed[self._places[host], self._places[rank]]
        bell[1] = rows
        bell[2] = len(denominators)
        for place, each in enumerate(denominators):
            bell[3 + place] = each
        bell[0] = round_ + 1
        return True

    def pushed(self, host: int, rank: int) -> int:
        """The last round for which a rank rang at a host; -1 before the first."""
        return int(self._pushed[self._places[host], self._places[rank], 0]) - 1

    def contribution(self, host: int, rank: int) -> Push:
        """What came with that ring."""
        bell = self._pushed[self._places[host], self._places[rank]]
        return Push(int(bell[1]), tuple(float(each) for each in bell[3 : 3 + int(bell[2])]))

    def give_result(self, host: int, round_: int) -> None:
        """Say that the result of a host's slice lies ready."""
        self._results[self._places[host], 0] = round_ + 1

    def result(self, host: int) -> int:
        """The last round of which a host's result lies ready; -1 before the first."""
        return int(self._results[self._places[host], 0]) - 1

    def sleep(self, rank: int, asleep: bool) -> None:
        """Say whether a rank has stopped looking."""
        self._sleeping[self._places[rank], 0] = asleep

    def is_asleep(self, rank: int) -> bool:
        """Whether a rank has stopped looking."""
        return bool(self._sleeping[self._places[rank], 0])
