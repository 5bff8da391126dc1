"""The mean of all workers. Runs where the parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.job.rule_declaration import RuleDeclaration
from keraunos.parameters import Vector


class Mean(Rule):
    """Of updates: move by their mean, which the plan may scale. Of weights: become their mean.

    Each worker counts by its rows. Float state is never moved further than the mean: it is a mean itself.
    """

    declaration = RuleDeclaration(
        takes=("updates", "weights"),
        meets=("synchronous",),
        scales_together=("updates",),
        instead_of_meeting="Without waiting there is nothing to average: use rule='add', which is scaled by 1/workers.",
    )

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move `parameters` by the mean update, or to the mean weights."""
        contributing = sum(each.rows > 0 for each in sent)
        if not contributing:
            return
        if self.plan.send == "weights":
            sums.mean([each.values for each in sent], sent, parameters)
            return
        trainable = self.part.trainable_size
        updates = [each.values[:trainable] for each in sent]
        sums.subtract_mean(updates, sent, parameters[:trainable], self.plan.factor(contributing))
        sums.move_state(self.plan, self.workers, sent, parameters[trainable:])
