"""What turns contributions into new parameters. Runs where the parameters live.

A rule holds one slice of the vector's state. It is called with contributions in the order of their ranks (all of a
round under a synchronous plan, a single one otherwise) and moves the slice's parameters in place.

Threads: a rule belongs to the thread that serves its slice, except under `hogwild`, where several threads call
`apply` on one rule and one vector at once, without locks; scratch space must then be a thread's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import UNDECLARED, RuleDeclaration
from keraunos.parameters import Vector


@dataclass(frozen=True)
class Sent:
    """One worker's complete contribution to a round, as far as it belongs to a slice.

    Gradients come as `len(denominators)` numerators of the slice's trainable size and the float state times rows;
    updates and weights come times rows, as one vector of the slice. `staleness` counts the contributions of others
    that were applied since the sender last got parameters. `squared_norm` is that of the sender's gradient (of its
    update) over the whole vector, for rules that ask for it. `rank` is the sender's, for rules that tell them apart.
    Rules read `values` and do not change them: they may be in memory that the sender shares.
    """

    values: Vector
    denominators: tuple[float | None, ...]
    rows: int
    staleness: int = 0
    squared_norm: float | None = None
    rank: int = -1


class Rule(ABC):
    """One slice's way from contributions to parameters.

    `declaration` says what the rule takes, how workers may meet with it, and its options: plans are checked by it on
    the driver, before any work. `elementwise` says whether a slice may end within a variable; `needs_norm` whether
    `apply` is to be given the squared norm of what is applied over all slices; `gives_parameters` whether workers get
    the new parameters, and otherwise `apply` fills `result` with what they get.
    """

    declaration: ClassVar[RuleDeclaration] = UNDECLARED
    elementwise: bool = True
    needs_norm: bool = False
    gives_parameters: bool = True

    def __init__(self, plan: ExchangePlan, part: Slice, workers: int) -> None:
        self.plan = plan
        self.part = part
        self.workers = workers

    @classmethod
    def is_elementwise(cls, plan: ExchangePlan) -> bool:  # noqa: ARG003 - a rule may answer by its options
        """Whether a slice may end within a variable, under this plan; asked before there are slices."""
        return cls.elementwise

    @classmethod
    def asks_for_norm(cls, plan: ExchangePlan) -> bool:  # noqa: ARG003 - a rule may answer by its options
        """Whether `apply` is to be given the squared norm, under this plan; asked before there are slices."""
        return cls.needs_norm

    @classmethod
    def puller(cls, plan: ExchangePlan, workers: int) -> Callable[[Vector, Vector], None]:
        """What moves a worker's own weights, in place, by a result; for rules that declare `on_workers=PULL`."""
        raise NotImplementedError(f"{cls.__name__} says that it pulls on workers and does not say how")

    def option(self, name: str) -> Any:
        """An option as it was given, or the default that the declaration has for it."""
        return self.plan.rule.value(name, self.workers)

    @abstractmethod
    def apply(
        self, sent: Sequence[Sent], parameters: Vector, result: Vector, *, squared_norm: float | None = None
    ) -> None:
        """Move `parameters` by what was sent; `result` is filled where it is not the parameters themselves."""

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """This slice's part of the squared norm of what `apply` would apply."""
        raise NotImplementedError(f"{type(self).__name__} asks for the norm and does not say how it is computed")

    def state(self) -> list[npt.NDArray[np.float64] | npt.NDArray[Any]]:
        """What the rule remembers besides the parameters: arrays that do not change when the rule goes on."""
        return []

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:  # noqa: B027 - most rules remember nothing
        """Remember what `state` gave."""

    def finish(self, parameters: Vector) -> None:  # noqa: B027 - most rules have nothing left to do
        """What is left to do to the parameters when training has ended."""

    @property
    def learning_rate(self) -> float | None:
        """The rate that a driver's callback may change, where the rule has one."""
        return None

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no learning rate")
