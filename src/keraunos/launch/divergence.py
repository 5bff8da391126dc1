"""A training that met numbers which are not finite: what the driver knows of it and says. Runs on the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from keraunos.errors import ExchangeError, ModelError
from keraunos.exchange import messages
from keraunos.exchange.server import Server
from keraunos.job.training_job import TrainingJob
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.lap_book import ClosedLap
from keraunos.learners.home_model import HomeModel
from keraunos.parameters import Vector, all_finite
from keraunos.telemetry.events import Diverged

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
    def of(cls, rank: int, host: str, found: messages.Diverged) -> Divergence:
        """What a worker has told."""
        return cls(rank, host, found.what, found.epoch, found.step)

    @property
    def reason(self) -> str:
        """One sentence."""
        return (
            f"In epoch {self.epoch + 1}, after {self.step} steps, worker {self.rank} on {self.host} found infinite or "
            f"NaN values in the {self.what}."
        )

    def told(self, *, recalled: bool, unchecked_ids: Sequence[str] = ()) -> Diverged:
        """The event that says why training ends, what the model has, and what may be done."""
        which = "those of a lap's beginning" if recalled else "those before it"
        return Diverged(
            reason=self.reason,
            message=f"Training ended early. {self.reason} The model has the last good parameters, {which}. "
            f"{advice(unchecked_ids)} onDivergence='skip' leaves such rounds out instead.",
        )


def advice(unchecked_ids: Sequence[str]) -> str:
    """What may be done; Embeddings whose ids nobody checked may be the cause."""
    if not unchecked_ids:
        return _ADVICE
    return (
        f"{_ADVICE} Ids outside the range of an Embedding lead to such values too; those of "
        f"{', '.join(map(repr, unchecked_ids))} could not be checked: they must be from 0 up to, not including, its "
        "`input_dim`."
    )


class LastGood:
    """Finite parameters at the end of a fit, wherever they are to be found; `check` is called while they travel."""

    def __init__(
        self, job: TrainingJob, home: HomeModel, server: Server, events: FitEvents, check: Callable[[], None]
    ) -> None:
        self._job = job
        self._home = home
        self._events = events
        self._server = server
        self._check = check

    def final(self, present: AbstractSet[int]) -> tuple[Vector, str | None]:
        """The parameters when all have trained to the end, and what is wrong where they had to be replaced."""
        vector = self._server.parameters(self._check, last=True)
        if self._job.on_divergence == "ignore" or all_finite(vector):
            return vector, None
        # Broken by a server's rule after the last that any worker saw. Workers that do not wait may be gone.
        reason = "The parameters that the last round led to were not finite."
        message = f"{reason} The model has earlier ones. {advice(self._job.columns.unchecked_ids)}"
        self._events.publish(Diverged(reason=reason, message=message))
        return self._recalled(min(present, default=None) if self._job.exchange.synchronous else None), reason

    def before(self, divergence: Divergence) -> Vector:
        """The last good parameters when a worker has met what is not finite; says so."""
        exchange = self._job.exchange
        last = exchange.synchronous and not exchange.applies_on_workers
        vector = np.array(self._server.parameters(self._check, last=last))
        good = all_finite(vector)
        if not good:
            vector = self._recalled(divergence.rank)
        self._events.publish(divergence.told(recalled=not good, unchecked_ids=self._job.columns.unchecked_ids))
        return vector

    def _recalled(self, rank: int | None) -> Vector:
        """What a worker kept when a lap began; without one, what the model at home has."""
        vector = self._home.read()
        if rank is not None:
            try:
                vector = np.array(self._server.recall(rank, self._check))
            except ExchangeError:
                self._events.warn(f"Worker {rank}, which had kept good parameters, is gone; the model has older ones.")
        if not all_finite(vector):
            raise ModelError(
                "The model's parameters must be finite before training begins. Received: infinite or NaN ones. Load "
                "them again, or initialise the model anew."
            )
        return vector


class SkipBook:
    """The rows that workers have skipped; says so at most once a lap."""

    def __init__(self, events: FitEvents, unchecked_ids: Sequence[str] = ()) -> None:
        self.rows = 0
        self._events = events
        self._advice = advice(unchecked_ids)
        self._untold: Counter[tuple[int, int]] = Counter()
        self._trained: set[int] = set()
        self._skipped: set[int] = set()

    def note(self, rank: int, lap: messages.Lap) -> None:
        """A rank has ended a lap."""
        epoch, rows = lap.epoch, lap.skipped
        if lap.trained:
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
            self._events.warn(
                f"Rows were skipped in epoch {lap.epoch + 1}, because what they led to was not finite ({named}). "
                f"{self._advice}"
            )
            for place in told:
                del self._untold[place]
        if not lap.over or lap.epoch in self._trained or lap.epoch not in self._skipped:
            return None
        reason = f"In epoch {lap.epoch + 1} what any rows led to was not finite, and all of them were skipped."
        message = f"Training ended early. {reason} The model has the last good parameters. {self._advice}"
        self._events.publish(Diverged(reason=reason, message=message))
        return reason
