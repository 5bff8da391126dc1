"""What a slice is at one moment, to go on from. Runs on both sides; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kept:
    """All that a slice needs to go on from here, as copies.

    Attributes:
        rounds: where each rank stands: the round that it contributes to next.
        contributed: how many rows of each rank have been applied.
        applied: how many contributions have been.
        arrays: the parameters, empty where the rule keeps none, and then what the rule remembers. A server puts what
            its results are encoded with between them.
    """

    rounds: dict[int, int]
    contributed: dict[int, int]
    applied: int
    arrays: list[Any]

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays, as plain data."""
        return {
            "rounds": list(self.rounds.items()),
            "contributed": list(self.contributed.items()),
            "applied": self.applied,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], arrays: list[Any]) -> Kept:
        """What `to_json` described, with its arrays."""
        rounds, contributed = (
            {int(rank): int(count) for rank, count in data[name]} for name in ("rounds", "contributed")
        )
        return cls(rounds, contributed, int(data["applied"]), arrays)
