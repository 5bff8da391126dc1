"""Nesterov momentum for updates that come one at a time. Runs where the parameters live.

Liu et al., "Asynchronous Local-SGD Training for Language Modeling" (arXiv 2401.09135): momentum that is applied with
every contribution counts the same, late news many times over. Here each update moves the parameters at once, and
momentum takes part only in every `delay`-th move, from the sum of the updates since the one before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import NOT_SYNCHRONOUS, RuleDeclaration, RuleOption
from keraunos.parameters import Vector


class DelayedNesterov(Rule):
    """The paper's update, with u the update times the plan's factor (1/workers unless the plan says otherwise).

    Each time: D += u, and W -= rate (c momentum m + u). Every `delay`-th time (the number of workers by default)
    instead: D += u, m = momentum m + D, D = 0, and W -= rate ((1 - c delay + c) momentum m + u). `activation` is c, 0
    by default: no momentum in between. Float state moves by u alone.
    """

    declaration = RuleDeclaration(
        takes=("updates",),
        meets=NOT_SYNCHRONOUS,
        options=(
            RuleOption.number("learning_rate", 0.7, at_least=0),
            RuleOption.number("momentum", 0.9, at_least=0, at_most=1),
            RuleOption.whole_number("delay", lambda workers: workers, at_least=1),
            RuleOption.number("activation", 0.0, at_least=0, at_most=1),
        ),
        scale="workers",
        instead_of_meeting="Use rule='sgd(learning_rate=0.7, momentum=0.9, nesterov=True)'.",
    )

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._rate = float(self.option("learning_rate"))
        self._beta = float(self.option("momentum"))
        self._delay = int(self.option("delay"))
        self._activation = float(self.option("activation"))
        self._momentum: Vector = np.zeros(part.trainable_size, part.layout.dtype)
        self._gathered: Vector = np.zeros(part.trainable_size, part.layout.dtype)
        self._count = 0
        # Counting must lose nothing, or the momentum's turn would be skipped; moving the vectors needs no lock.
        self._counting = threading.Lock()

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move `parameters` by each update, and by the momentum when it is its turn."""
        for each in sent:
            self._one(each, parameters)

    def state(self) -> list[npt.NDArray[Any]]:
        """The momentum, what was gathered since it last moved, and the number of contributions."""
        return [self._momentum.copy(), self._gathered.copy(), np.array(self._count)]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Remember what `state` gave."""
        np.copyto(self._momentum, state[0])
        np.copyto(self._gathered, state[1])
        self._count = int(state[2])

    @property
    def learning_rate(self) -> float | None:
        """The rate on what is sent."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._rate = value

    def _one(self, sent: Sent, parameters: Vector) -> None:
        trainable = self.part.trainable_size
        factor = self.plan.factor(self.workers, sent.staleness) * sums.over_rows(sent.rows)
        update, moving = sent.values[:trainable], parameters[:trainable]
        with self._counting:
            self._count += 1
            momentums_turn = self._count % self._delay == 0
        sums.weighted_sum([update], factor, self._gathered, accumulate=True)
        share = self._activation
        if momentums_turn:
            np.multiply(self._momentum, self._momentum.dtype.type(self._beta), out=self._momentum)
            np.add(self._momentum, self._gathered, out=self._momentum)
            self._gathered.fill(0)
            share = 1.0 - self._activation * self._delay + self._activation
        sums.weighted_sum([update], -self._rate * factor, moving, accumulate=True)
        if share:
            sums.weighted_sum([self._momentum], -self._rate * share * self._beta, moving, accumulate=True)
        sums.weighted_sum([sent.values[trainable:]], -factor, parameters[trainable:], accumulate=True)
