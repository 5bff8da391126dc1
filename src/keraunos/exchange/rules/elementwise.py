"""What optimizers written in numpy share: blocks, slots, steps, float state. Runs where the parameters live.

A front-end registers the update rules of an old system that Keras lacks, or that differ from Keras's, as subclasses
of `ElementwiseOptimizer`: each says what its slots start from and how one block of elements moves.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import RuleDeclaration
from keraunos.parameters import Vector

# A block of parameters, its gradient, slots and scratch together stay in a core's own cache.
BLOCK = 1 << 14


@dataclass(frozen=True)
class Block:
    """Some neighbouring elements of a step: parameters and slots move in place, the rest may be overwritten.

    `rate` is the step's learning rate; `step` counts from 1.
    """

    parameters: Vector
    gradient: Vector
    slots: Sequence[Vector]
    scratch: Sequence[Vector]
    rate: float
    step: int


class ElementwiseOptimizer(Rule):
    """One step for a round's mean gradient (or update), or for each contribution as it comes.

    The plan's `scale` is a factor on the learning rate of the step. Float state moves without the optimizer, as
    `sums.move_state` says. Under `hogwild` slots are as shared and as unlocked as the parameters; only steps are
    counted under a lock, because a step that two threads counted once would bend every schedule.
    """

    declaration = RuleDeclaration(takes=("gradients", "updates"), other_options=True)
    scratch_blocks: int = 1

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._rate: float = self._option("learning_rate")
        self._slots = [np.full(part.trainable_size, each, part.layout.dtype) for each in self.first_slots()]
        self._steps = 0
        self._counting = threading.Lock()
        self._own = threading.local()

    @abstractmethod
    def first_slots(self) -> Sequence[float]:
        """What every element of each slot starts from."""

    @abstractmethod
    def move(self, block: Block) -> None:
        """Move the parameters of one block in place, and its slots."""

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self._rate

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Step with what was sent, and move the float state."""
        trainable = self.part.trainable_size
        if trainable and any(each.rows for each in sent):
            self._step(sent, parameters[:trainable])
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

    def _step(self, sent: Sequence[Sent], parameters: Vector) -> None:
        with self._counting:
            self._steps += 1
            step = self._steps
        rate = self.rate_at(step) * self.plan.factor(self.workers, sent[0].staleness)
        blocks = self._blocks()
        for start in range(0, parameters.size, BLOCK):
            moving = parameters[start : start + BLOCK]
            gradient, *scratch = (block[: moving.size] for block in blocks)
            sums.reduced(self.plan, sent, self.part.trainable_size, gradient, first=start)
            slots = [slot[start : start + BLOCK] for slot in self._slots]
            self.move(Block(moving, gradient, slots, scratch, rate, step))

    def _blocks(self) -> list[Vector]:
        """This thread's own space for a gradient and what is computed from it."""
        blocks: list[Vector] | None = getattr(self._own, "blocks", None)
        if blocks is None:
            dtype = self.part.layout.dtype
            self._own.blocks = blocks = [np.empty(BLOCK, dtype) for _ in range(1 + self.scratch_blocks)]
        return blocks
