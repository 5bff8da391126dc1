"""Optimizers in numpy that treat every element alone, block by block. Runs where the parameters live.

A front-end registers the update rules of an old system that Keras lacks, or that differ from Keras's, as subclasses
of `ElementwiseOptimizer`: each says what its slots start from and how one block of elements moves. What several of
them have in common is in `elementwise_optimizers`.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.optimizer import Optimizer
from keraunos.exchange.rules.rule import Sent
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


class ElementwiseOptimizer(Optimizer):
    """An optimizer that says how a block moves; each thread has scratch blocks of its own."""

    declaration = RuleDeclaration(takes=("gradients", "updates"), other_options=True)
    scratch_blocks: int = 1

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._own = threading.local()

    def prepare(self, block: Block) -> None:
        """Change the gradient of one block before `move` is called with it."""

    @abstractmethod
    def move(self, block: Block) -> None:
        """Move the parameters of one block in place, and its slots."""

    def take_step(
        self, sent: Sequence[Sent], parameters: Vector, rate: float, step: int, squared_norm: float | None
    ) -> None:
        """Reduce what was sent block by block, and move each."""
        blocks = self._blocks()
        for start in range(0, parameters.size, BLOCK):
            moving = parameters[start : start + BLOCK]
            gradient, *scratch = (block[: moving.size] for block in blocks)
            sums.reduced(self.plan, sent, self.part.trainable_size, gradient, first=start)
            slots = [slot[start : start + BLOCK] for slot in self._slots]
            block = Block(moving, gradient, slots, scratch, rate, step)
            self.prepare(block)
            self.move(block)

    def _blocks(self) -> list[Vector]:
        """This thread's own space for a gradient and what is computed from it."""
        blocks: list[Vector] | None = getattr(self._own, "blocks", None)
        if blocks is None:
            dtype = self.part.layout.dtype
            self._own.blocks = blocks = [np.empty(BLOCK, dtype) for _ in range(1 + self.scratch_blocks)]
        return blocks
