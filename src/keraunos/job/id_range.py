"""Which numbers of a model's input are ids, and of how many things. Plain data; runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class IdRange:
    """Elements of a row that an Embedding looks up, which must be whole numbers from 0 up to, not including, `size`.

    Attributes:
        layer: the name of the Embedding.
        size: how many ids it knows.
        positions: where the ids are in a row that is laid out flat.
        period: if above 0, the positions are repeated every so many elements; 1 with position 0 stands for all.
    """

    layer: str
    size: int
    positions: tuple[int, ...] = (0,)
    period: int = 1

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {"layer": self.layer, "size": self.size, "positions": list(self.positions), "period": self.period}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> IdRange:
        """The range that `to_json` described."""
        return cls(data["layer"], data["size"], tuple(data["positions"]), data["period"])
