"""Weights that follow the workers' as a moving average. Runs where the parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import RuleDeclaration, RuleOption
from keraunos.parameters import Vector


class MovingAverage(Rule):
    """W becomes ((n - 1) W + w) / n for each worker's weights w; n is the number of workers unless it is given."""

    declaration = RuleDeclaration(
        takes=("weights",),
        options=(RuleOption.whole_number("n", lambda workers: workers, at_least=1),),
        scales=(),
        moved_by="n",
    )

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        super().__init__(plan, part, workers)
        self._weight = 1.0 / self.option("n")

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move `parameters` towards each worker's weights, in the order of the ranks."""
        for each in sent:
            if each.rows:
                sums.add_difference(each.values, sums.over_rows(each.rows), parameters, self._weight, parameters)
