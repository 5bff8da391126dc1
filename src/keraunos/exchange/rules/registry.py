"""The rule that a plan names. Runs where the parameters live; what a rule needs is also asked on the driver.

A rule is found by `module:Class` and imported only when it is asked for. A front-end adds its own with `register_rule`;
the plan then carries the rule's home, and any process that can import it can run it. A plan comes from the driver, over
the job's own connections; a rule that is read from a file is looked at before it gets into one (`RuleSpec.from_saved`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from keraunos.errors import PlanError
from keraunos.exchange.rules.rule import Rule
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec, register_rule

__all__ = ["gives_parameters", "is_elementwise", "make_rule", "needs_norm", "register_rule", "rule_class"]

_HOMES: Mapping[str, str] = {
    "own": "keraunos.exchange.rules.own:Own",
    "mean": "keraunos.exchange.rules.mean:Mean",
    "sum": "keraunos.exchange.rules.sum:Sum",
    "add": "keraunos.exchange.rules.add:Add",
    "moving_average": "keraunos.exchange.rules.moving_average:MovingAverage",
    "elastic": "keraunos.exchange.rules.elastic:Elastic",
    "delayed_nesterov": "keraunos.exchange.rules.delayed_nesterov:DelayedNesterov",
}
_KERAS = "keraunos.exchange.rules.keras_optimizer:KerasOptimizer"


def make_rule(plan: ExchangePlan, part: Slice, workers: int) -> Rule:
    """The plan's rule for one slice of the vector.

    A Keras optimizer loads Keras, on the backend that `KERAS_BACKEND` names.
    """
    return rule_class(plan.rule)(plan, part, workers)


def is_elementwise(plan: ExchangePlan) -> bool:
    """Whether the vector may be cut anywhere; otherwise only between variables."""
    return rule_class(plan.rule).is_elementwise(plan)


def needs_norm(plan: ExchangePlan) -> bool:
    """Whether the rule asks for the squared norm, over all slices, of what it is to apply."""
    return rule_class(plan.rule).asks_for_norm(plan)


def gives_parameters(plan: ExchangePlan) -> bool:
    """Whether workers get the new parameters, and not a result of its own kind."""
    return rule_class(plan.rule).gives_parameters


def rule_class(spec: RuleSpec) -> type[Rule]:
    """The class that a rule's name stands for."""
    home = spec.home or (_KERAS if spec.is_optimizer else _HOMES[spec.name])
    module, _, name = home.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PlanError(
            f"The rule {spec.name!r} must be importable wherever a server runs. Expected: {home!r}. Received: {error}. "
            "Install the package that registers it on the executors."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Rule)):
        raise PlanError(
            f"The rule {spec.name!r} must be a subclass of Rule. Expected at: {home!r}. Received: {found!r}."
        )
    return found
