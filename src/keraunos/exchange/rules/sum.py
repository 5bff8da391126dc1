"""The sum of all workers' updates. Runs where the parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.job.rule_declaration import RuleDeclaration
from keraunos.parameters import Vector


class Sum(Rule):
    """Move by every worker's whole update.

    Float state moves by the mean update instead: it is an average of what each worker saw, and n moves towards nearly
    the same place, added up, overshoot it.
    """

    declaration = RuleDeclaration(
        takes=("updates",),
        meets=("synchronous",),
        instead_of_meeting="To add each update at once, use rule='add' with scale=1.",
    )

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Subtract the updates from `parameters`, in the order of the ranks."""
        trainable = self.part.trainable_size
        for each in sent:
            factor = -sums.over_rows(each.rows)
            sums.weighted_sum([each.values[:trainable]], factor, parameters[:trainable], accumulate=True)
        if self.part.state_size:
            sums.subtract_mean([each.values[trainable:] for each in sent], sent, parameters[trainable:])
