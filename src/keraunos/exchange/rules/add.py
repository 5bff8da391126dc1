"""Each worker's update as it comes, scaled. Runs where the parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.job.rule_declaration import NOT_SYNCHRONOUS, STRETCHED, RuleDeclaration
from keraunos.parameters import Vector


class Add(Rule):
    """Move by each update times the plan's factor, which is one over the workers unless the plan says otherwise.

    Under `hogwild` this is a plain sum into the shared vector, block by block and without locks: where two threads
    meet in a block, one of their moves may be lost there.
    """

    declaration = RuleDeclaration(
        takes=("updates",),
        meets=NOT_SYNCHRONOUS,
        scale="workers",
        instead_of_meeting="Use rule='mean' or 'sum'.",
    )

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Subtract the scaled updates from `parameters`."""
        trainable = self.part.trainable_size if self.plan.scaled_by == STRETCHED else parameters.size
        for each in sent:
            factor = self.plan.factor(self.workers, each.staleness)
            sums.subtract_mean([each.values[:trainable]], [each], parameters[:trainable], factor)
            # Float state is a mean, which is never stretched.
            sums.move_state(self.plan, self.workers, [each], parameters[trainable:])
