"""What optimizers written in numpy share: counted steps, slots, float state. Runs where the parameters live."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Vector


class Optimizer(Rule):
    """One step for a round's mean gradient (or update), or for each contribution as it comes.

    The plan's `scale` is a factor on the learning rate of the step. Float state moves without the optimizer, as
    `sums.move_state` says. Under `hogwild` slots are as shared and as unlocked as the parameters; only steps are
    counted under a lock, because a step that two threads counted once would bend every schedule.
    """

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._rate: float = self._option("learning_rate")
        self._slots = [np.full(part.trainable_size, each, part.layout.dtype) for each in self.first_slots()]
        self._steps = 0
        self._counting = threading.Lock()

    def first_slots(self) -> Sequence[float]:
        """What every element of each slot starts from; there are no slots by default."""
        return ()

    @abstractmethod
    def take_step(
        self, sent: Sequence[Sent], parameters: Vector, rate: float, step: int, squared_norm: float | None
    ) -> None:
        """Move the trainable parameters in place, and the slots; `step` counts from 1, `rate` is the step's own."""

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self._rate

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Step with what was sent, and move the float state."""
        trainable = self.part.trainable_size
        if trainable and any(each.rows for each in sent):
            with self._counting:
                self._steps += 1
                step = self._steps
            rate = self.rate_at(step) * self.plan.factor(self.workers, sent[0].staleness)
            self.take_step(sent, parameters[:trainable], rate, step, squared_norm)
        sums.move_state(self.plan, self.workers, sent, parameters[trainable:])

    def state(self) -> list[npt.NDArray[Any]]:
        """The slots, and the number of steps."""
        return [*(slot.copy() for slot in self._slots), np.array(self._steps)]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Remember what `state` gave."""
        for slot, kept in zip(self._slots, state, strict=False):
            np.copyto(slot, kept)
        self._steps = int(state[-1])

    @property
    def learning_rate(self) -> float | None:
        """The rate before any schedule and scale."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._rate = value

    def _option(self, name: str) -> Any:
        """An option of the rule, which must have been given."""
        return self.plan.rule.options[name]
