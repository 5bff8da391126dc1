"""What ranks left with the driver to continue from, and what an earlier fit left. Runs on the driver; no I/O.

States come in chunks, in any order; nothing that arrives is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import KeptSlice
from keraunos.exchange.messages import Go, HeldState, State
from keraunos.exchange.wire import Message, WireError, pack_typed, unpack_typed


@dataclass(frozen=True)
class Held:
    """Weights and optimizer state as a rank sent them, before the round that is named."""

    round: int
    arrays: list[Any]
    buffer: bytearray

    def described(self) -> HeldState:
        """What one who is to fetch it must know."""
        return HeldState(len(self.buffer), self.arrays)


@dataclass(frozen=True)
class HeldSlice:
    """What a slice was."""

    facts: Kept
    held: Held

    def described(self) -> KeptSlice:
        """What the host that is to fetch it must know."""
        return KeptSlice(len(self.held.buffer), self.held.arrays, self.facts)


@dataclass(frozen=True)
class Standing:
    """Where a training stands that was begun by an earlier fit and is to go on.

    Attributes:
        states: each rank's weights and optimizer state, and the round before which it had them.
        slices: what each slice was, in their order.
        laps_done: how many laps each rank has ended.
        steps_traced: how many steps' losses each rank has told.
        decided: what the driver decided after the last lap.
    """

    states: Mapping[int, tuple[int, Sequence[Any]]]
    slices: Sequence[Kept]
    laps_done: Mapping[int, int]
    steps_traced: Mapping[int, int]
    decided: Go | None


class HeldStates:
    """Weights and optimizer states by rank, and slices by their place, as they were left last."""

    def __init__(self) -> None:
        self.ranks: dict[int, Held] = {}
        self._former: dict[int, Held] = {}
        self.slices: list[HeldSlice] = []
        self._arriving: dict[tuple[int, int, bool], _Arriving] = {}

    def go_on_from(self, standing: Standing) -> None:
        """Hold what an earlier fit left."""
        packed: dict[int, Held] = {}
        for rank, (round_, arrays) in standing.states.items():
            # Where all ranks have the same, they share it here, too.
            if id(arrays) not in packed:
                packed[id(arrays)] = _packed(round_, arrays)
            self.ranks[rank] = packed[id(arrays)]
        self.slices = [HeldSlice(kept, _packed(0, kept.arrays)) for kept in standing.slices]

    def arrives(self, message: Message, state: State) -> bytearray | None:
        """Take a chunk in; all of them together once the last is here. A `WireError` where they do not fit together."""
        key = (message.rank, state.target, state.slice is not None)
        piece = memoryview(message.payload).cast("B") if message.payload is not None else memoryview(b"")  # type: ignore[arg-type]  # what arrives is a memoryview
        if key not in self._arriving or self._arriving[key].begins_again(message.offset):
            self._arriving[key] = _Arriving()
        arriving = self._arriving[key]
        arriving.add(message.offset, piece)
        if arriving.taken > max(1, state.size) or (state.complete and len(arriving.buffer) != state.size):
            del self._arriving[key]
            raise WireError("the chunks of a state do not fit together")
        return self._arriving.pop(key).buffer if state.complete else None

    def hold(self, rank: int, held: Held) -> None:
        """Hold what a rank left now, and what it left before: it may be lost before it gets to the newer round."""
        if rank in self.ranks:
            self._former[rank] = self.ranks[rank]
        self.ranks[rank] = held

    def choose(self, rank: int, round_: int | None) -> Held | None:
        """What a rank is to continue from in that round; from now on that is what is held of it."""
        former = self._former.get(rank)
        if former is not None and former.round == round_:
            self.ranks[rank] = former
        return self.ranks.get(rank)

    def read(self) -> dict[int, tuple[int, list[Any]]]:
        """Each rank's arrays, and the round before which it had them."""
        return {rank: (each.round, unpack_typed(each.arrays, each.buffer)) for rank, each in list(self.ranks.items())}


class _Arriving:
    """A state as its chunks arrive. It grows with what is here: no memory is taken for a size that is only claimed."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.taken = 0
        self._ahead: dict[int, bytes] = {}

    def begins_again(self, offset: int) -> bool:
        """Whether a chunk is the first once more: a rank that came back sends what its predecessor did not end."""
        return offset == 0 and bool(self.buffer)

    def add(self, offset: int, piece: memoryview) -> None:
        """Take a chunk in; one that is ahead of its turn waits."""
        self.taken += max(1, len(piece))
        if offset != len(self.buffer):
            self._ahead[offset] = bytes(piece)
            return
        self.buffer += piece
        while (following := self._ahead.pop(len(self.buffer), None)) is not None:
            self.buffer += following


def _packed(round_: int, arrays: Sequence[Any]) -> Held:
    described, buffer = pack_typed(arrays)
    return Held(round_, described, bytearray(buffer))
