"""The rule that a plan names. Runs where the parameters live; what a rule needs is also asked on the driver.

A rule is found by `module:Class` and imported only when it is asked for. A front-end adds its own with `register_rule`;
the plan then carries the rule's home, and any process that can import it can run it. A plan comes from the driver, over
the job's own connections; a rule that is read from a file is looked at before it gets into one (`RuleSpec.from_saved`).
"""

from __future__ import annotations

from collections.abc import Callable

from keraunos.errors import PlanError
from keraunos.exchange.rules.rule import Rule
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_declaration import PULL
from keraunos.job.rule_spec import RuleSpec, register_rule
from keraunos.parameters import Vector

__all__ = [
    "checked_class",
    "gives_parameters",
    "is_elementwise",
    "make_rule",
    "needs_norm",
    "puller",
    "register_rule",
    "rule_class",
]


def make_rule(plan: ExchangePlan, part: Slice, workers: int) -> Rule:
    """The plan's rule for one slice of the vector.

    A Keras optimizer loads Keras, on the backend that `KERAS_BACKEND` names.
    """
    return checked_class(plan)(plan, part, workers)


def is_elementwise(plan: ExchangePlan) -> bool:
    """Whether the vector may be cut anywhere; otherwise only between variables."""
    return checked_class(plan).is_elementwise(plan)


def needs_norm(plan: ExchangePlan) -> bool:
    """Whether the rule asks for the squared norm, over all slices, of what it is to apply."""
    return checked_class(plan).asks_for_norm(plan)


def gives_parameters(plan: ExchangePlan) -> bool:
    """Whether workers get the new parameters, and not a result of its own kind."""
    return checked_class(plan).gives_parameters


def puller(plan: ExchangePlan, workers: int) -> Callable[[Vector, Vector], None]:
    """What moves a worker's own weights by a result, where the rule pulls on workers."""
    return checked_class(plan).puller(plan, workers)


def rule_class(spec: RuleSpec) -> type[Rule]:
    """The class that a rule's name stands for."""
    found = spec.imported()
    if not (isinstance(found, type) and issubclass(found, Rule)):
        raise PlanError(
            f"The rule {spec.name!r} must be a subclass of Rule. Expected at: {spec.home!r}. Received: {found!r}."
        )
    if found.declaration.on_workers == PULL and found.puller.__func__ is Rule.puller.__func__:  # type: ignore[attr-defined]  # a method of the class
        raise PlanError(
            f"The rule {spec.name!r} must have a class method `puller`, because it declares on_workers='pull'. "
            f"Received: {found!r}, which has none."
        )
    return found


def checked_class(plan: ExchangePlan) -> type[Rule]:
    """The class of the plan's rule; refused where it does not fit the plan, which may come from another process."""
    found = rule_class(plan.rule)
    plan.check()
    return found
