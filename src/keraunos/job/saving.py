"""When a training is saved. Runs on the driver and on workers.

A synchronous training is saved at a round: everyone has then applied the same contributions, and what each member has
before that round is one whole state. All members must agree on the round without asking each other, so it is a
function of its number, or is announced before anybody gets there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.errors import JobError

UNITS = ("epochs", "rounds", "seconds")
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_EXPECTED = (
    "`checkpointEvery` must be a number of epochs, or a text such as 'epoch', '2 epochs', '500 rounds', '90 seconds' "
    "or '10 minutes'."
)


@dataclass(frozen=True)
class SaveEvery:
    """Every so many epochs, rounds or seconds."""

    count: float
    unit: str

    def __post_init__(self) -> None:
        whole = isinstance(self.count, int) or float(self.count).is_integer()
        if self.unit not in UNITS or not self.count > 0 or (self.unit != "seconds" and not whole):
            raise JobError(f"{_EXPECTED} Received: {self.count!r} {self.unit}.")

    @classmethod
    def of(cls, value: Any) -> SaveEvery:
        """What a user wrote, read."""
        if isinstance(value, SaveEvery):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(value, "epochs")
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)?\s*(epoch|round|second|minute|hour)s?\s*", str(value).lower())
        if found is None or not isinstance(value, str):
            raise JobError(f"{_EXPECTED} Received: {value!r}.")
        count, unit = float(found.group(1) or 1), found.group(2)
        if unit in _SECONDS:
            return cls(count * _SECONDS[unit], "seconds")
        return cls(int(count) if count.is_integer() else count, f"{unit}s")

    def to_json(self) -> list[Any]:
        """Plain data that `from_json` reads back."""
        return [self.count, self.unit]

    @classmethod
    def from_json(cls, data: Any) -> SaveEvery:
        """What `to_json` described."""
        return cls(data[0], str(data[1]))


@dataclass(frozen=True)
class Checkpoints:
    """Where a training is saved, how often, and how many of the newest are kept."""

    directory: str
    every: SaveEvery = SaveEvery(1, "epochs")
    keep: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.directory, str) or not self.directory:
            raise JobError(f"`checkpointDir` must be a path. Received: {self.directory!r}.")
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise JobError(f"`checkpointKeep` must be a whole number of at least 1. Received: {self.keep!r}.")


class SavePoints:
    """Before which rounds a synchronous training is saved. Belongs to one thread."""

    def __init__(self, *, every: int = 0, rounds: frozenset[int] = frozenset()) -> None:
        self._every = every
        self._rounds = rounds
        self._announced: int | None = None

    def due(self, round_: int) -> bool:
        """Whether the state before this round is to be kept."""
        return (
            round_ in self._rounds or round_ == self._announced or (self._every > 0 and not round_ % self._every)
        ) and round_ > 0

    def announce(self, round_: int) -> None:
        """Save before this round, too, which must be still to come."""
        self._announced = round_

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {"every": self._every, "rounds": sorted(self._rounds)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> SavePoints:
        """What `to_json` described; nothing is saved without it."""
        return cls(every=int(data["every"]), rounds=frozenset(data["rounds"])) if data else cls()
