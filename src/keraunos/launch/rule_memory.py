"""What a server's rule remembers, from one fit to the next. Runs on the driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from keraunos.errors import JobError
from keraunos.exchange.server import Server
from keraunos.parameters import are_finite


@dataclass
class RuleMemory:
    """What the rule on the driver's server remembers (an optimizer's moments), from one fit to the next.

    Given to a fit, the rule begins with it, where there is something, and leaves there what it knows in the end. The
    fits must have the same rule and the same model.
    """

    state: list[npt.NDArray[Any]] = field(default_factory=list)

    def begin(self, server: Server) -> None:
        """Let the rule begin with what is remembered."""
        if server.rule is None:
            raise JobError(
                "What a rule remembers can be carried on only where the driver has it. Expected: servers='driver' and "
                f"a rule that is not the workers' own. Received: rule={str(server.plan.rule)!r}."
            )
        if self.state:
            server.rule.restore(self.state)

    def end(self, server: Server, *, checked: bool) -> None:
        """Take what the rule knows in the end; with `checked` only where it is finite."""
        state = [] if server.rule is None else list(server.rule.state())
        if not checked or are_finite(state):
            self.state = state
