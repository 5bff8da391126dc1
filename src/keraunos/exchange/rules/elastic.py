"""Elastic averaging: a center and workers that pull at each other. Runs where the parameters live, and on workers.

Zhang, Choromanska and LeCun, "Deep learning with Elastic Averaging SGD". Every round a worker sends its weights w. The
center c moves by alpha (w - c); the worker gets the center as it was before the move and itself moves by
alpha (c - w), with `pull`. Neither takes the other's place, so that workers explore around the center.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import NUMBER, PULL, STRETCHED, RuleDeclaration, RuleOption
from keraunos.parameters import Vector

# With alpha = 0.9 / workers the workers together pull the center as the paper's experiments do.
_ALL_WORKERS_PULL = 0.9


def alpha_of(plan: ExchangePlan, workers: int) -> float:
    """How far a worker and the center move towards each other in a round."""
    return float(plan.rule.value("alpha", workers))


def pull(weights: Vector, center: Vector, alpha: float) -> None:
    """Move a worker's weights towards the center that it got."""
    sums.add_difference(center, 1.0, weights, alpha, weights)


class Elastic(Rule):
    """The center moves by alpha times the sum of (w - center) over the senders; they get the center before the move."""

    declaration = RuleDeclaration(
        takes=("weights",),
        options=(RuleOption.between("alpha", lambda workers: _ALL_WORKERS_PULL / workers, low=0, high=1),),
        scales=(NUMBER, STRETCHED),
        scales_together=("weights",),
        moved_by="alpha",
        on_workers=PULL,
    )
    gives_parameters = False

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._alpha = alpha_of(plan, workers)

    @classmethod
    def puller(cls, plan: ExchangePlan, workers: int) -> Callable[[Vector, Vector], None]:
        """Move a worker's weights towards the center that it got."""
        return partial(pull, alpha=alpha_of(plan, workers))

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Fill `result` with the center, then move it."""
        np.copyto(result, parameters)
        for each in sent:
            if each.rows:
                # All differences are to the center before the round, which `result` keeps.
                sums.add_difference(each.values, sums.over_rows(each.rows), result, self._alpha, parameters)
