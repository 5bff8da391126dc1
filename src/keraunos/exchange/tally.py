"""How far a member is, in plain counters. Runs on both sides; no I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_MOST_WORDS = 100
_BYTES = ("bytes_sent", "bytes_received", "bytes_shared")


@dataclass(slots=True)
class Tally:
    """How far a member is, and what it did with its time; written by the thread that trains.

    `steps` are all that this rank has taken, those of an earlier incarnation included; `timed` are those of this
    incarnation whose time is in `busy` and `waited`: seconds of its own work, and of waiting for others.

    `bytes_sent` and `bytes_received` went over sockets, `bytes_shared` through memory that it shares with servers of
    its host, both ways. Not counted are signs of life, and the slice that it hosts itself. `staleness` is how many
    contributions of others were applied between the parameters that its last one was computed with and that one.
    """

    round: int = 0
    rows: int = 0
    steps: int = 0
    timed: int = 0
    busy: float = 0.0
    waited: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_shared: int = 0
    staleness: int = 0
    waiting_for: str = ""
    sent: str = ""
    received: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {name: getattr(self, name) for name in self.__slots__}

    def after(self, before: Tally | None) -> Tally:
        """This tally with the work that the same rank has done before, as an earlier incarnation."""
        if before is None:
            return self
        names = ("rows", "timed", "busy", "waited", *_BYTES)
        sums = {name: getattr(self, name) + getattr(before, name) for name in names}
        return replace(self, steps=max(self.steps, before.steps), **sums)

    def newer(self, known: Tally | None) -> Tally:
        """This tally, or the one that is known already where this one was overtaken on its way."""
        return known if known is not None and (known.steps, known.round) > (self.steps, self.round) else self

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tally:
        """The tally that somebody told, checked: a `ValueError` for what is none."""
        counts = {name: int(data[name]) for name in ("round", "rows", "steps", "timed", "staleness", *_BYTES)}
        seconds = {name: float(data[name]) for name in ("busy", "waited")}
        words = {name: str(data[name])[:_MOST_WORDS] for name in ("waiting_for", "sent", "received")}
        numbers = [*counts.values(), *seconds.values()]
        if min(numbers) < 0 or max(numbers) > 1 << 62 or not all(map(math.isfinite, seconds.values())):
            raise ValueError("a tally's figures are out of range")
        found: dict[str, Any] = {**counts, **seconds, **words}
        return cls(**found)
