"""A training that met numbers which are not finite: what the driver knows of it and says. Runs on the driver."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.launch.lap_book import ClosedLap

logger = logging.getLogger(__name__)

_ADVICE = (
    "Lower the learning rate, clip gradients (`clipnorm` or `global_clipnorm` of the optimizer), and look for rows "
    "whose values are far from all others."
)


@dataclass(frozen=True)
class Divergence:
    """What was not finite, and where: epochs are counted from 0, and `step` is how many had been taken before."""

    rank: int
    host: str
    what: str
    epoch: int
    step: int

    @classmethod
    def of(cls, rank: int, host: str, body: Mapping[str, Any]) -> Divergence:
        """What a worker has told."""
        return cls(rank, host, body["what"], body["epoch"], body["step"])

    @property
    def reason(self) -> str:
        """One sentence."""
        return (
            f"In epoch {self.epoch + 1}, after {self.step} steps, worker {self.rank} on {self.host} found infinite or "
            f"NaN values in the {self.what}."
        )

    def warn(self, *, recalled: bool) -> None:
        """Say why training ends, what the model has, and what may be done."""
        which = "those of a lap's beginning" if recalled else "those before it"
        logger.warning(
            "Training ended early. %s The model has the last good parameters, %s. %s onDivergence='skip' leaves such "
            "rounds out instead.", self.reason, which, _ADVICE,
        )  # fmt: skip


class SkipBook:
    """The rows that workers have skipped; says so at most once a lap."""

    def __init__(self) -> None:
        self.rows = 0
        self._untold: Counter[tuple[int, int]] = Counter()
        self._trained: set[int] = set()
        self._skipped: set[int] = set()

    def note(self, rank: int, body: Mapping[str, Any]) -> None:
        """A rank has ended a lap."""
        epoch, rows = int(body["epoch"]), int(body["skipped"])
        if body["trained"]:
            self._trained.add(epoch)
        if rows:
            self.rows += rows
            self._untold[epoch, rank] += rows
            self._skipped.add(epoch)

    def close(self, lap: ClosedLap, hosts: Mapping[int, str]) -> str | None:
        """A lap is closed; why training must end, where all rows of a whole epoch were skipped."""
        # Where workers do not wait for each other, some are in later epochs already.
        told = {place: rows for place, rows in sorted(self._untold.items()) if place[0] <= lap.epoch}
        if told:
            named = ", ".join(f"worker {rank} on {hosts.get(rank)}: {rows}" for (_, rank), rows in told.items())
            logger.warning(
                "Rows were skipped in epoch %d, because what they led to was not finite (%s). %s",
                lap.epoch + 1, named, _ADVICE,
            )  # fmt: skip
            for place in told:
                del self._untold[place]
        if not lap.over or lap.epoch in self._trained or lap.epoch not in self._skipped:
            return None
        reason = f"In epoch {lap.epoch + 1} what any rows led to was not finite, and all of them were skipped."
        logger.warning("Training ended early. %s The model has the last good parameters. %s", reason, _ADVICE)
        return reason
