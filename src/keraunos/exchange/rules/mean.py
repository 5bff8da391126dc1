"""The mean of all workers. Runs where the parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.parameters import Vector


class Mean(Rule):
    """Of updates: move by their mean. Of weights: become their mean. Each worker counts by its rows."""

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move `parameters` by the mean update, or to the mean weights."""
        values = [each.values for each in sent]
        if self.plan.send == "updates":
            sums.subtract_mean(values, sent, parameters)
        elif any(each.rows for each in sent):
            sums.mean(values, sent, parameters)
