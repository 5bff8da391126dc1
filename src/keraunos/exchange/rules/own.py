"""The model's own optimizer on each worker: servers only reduce. Runs where the parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.exchange.rules import sums
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.job.rule_declaration import APPLY, RuleDeclaration
from keraunos.parameters import Vector


class Own(Rule):
    """Workers get the gradient of the global batch and the mean of the float state, and apply them themselves."""

    declaration = RuleDeclaration(
        takes=("gradients",),
        meets=("synchronous",),
        on_workers=APPLY,
        instead_of_sending="For the model's own optimizer to take whole steps between exchanges, use rule='mean'.",
        instead_of_meeting="To apply gradients without waiting, use an optimizer on the server, such as rule='sgd'.",
    )
    gives_parameters = False

    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Reduce into `result`; the parameters are on the workers and stay as they are here."""
        sums.mean_gradient(sent, self.part.trainable_size, result)
