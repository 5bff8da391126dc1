"""From Paddle's settings to a plan for the exchange and an optimizer for local steps. Runs on the driver.

`sgd` and `async_sgd` send a gradient every batch to servers that run the learning method. With
`num_batches_per_send_parameter` above 1 trainers step by themselves and send what changed, or, where the center is
averaged elastically, their weights.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from keraunos.compat.paddle.model_config import OptimizationConfig, ParameterConfig
from keraunos.compat.paddle.updates.formulas import METHODS, Attributes
from keraunos.compat.paddle.updates.optimizer import PaddleOptimizer
from keraunos.compat.paddle.updates.rule import CHANGES, GRADIENTS
from keraunos.compat.paddle.updates.schedules import check_schedule, counts_passes
from keraunos.errors import PlanError, one_of
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec

logger = logging.getLogger(__name__)

ALGORITHMS = ("sgd", "async_sgd")
CENTERS = ("average", "elastic_average")
_USUAL_DISCARD_RATIO = 1.5


def plan_of(
    opt: OptimizationConfig,
    parameters: Sequence[ParameterConfig],
    trainers: int,
    *,
    samples_per_pass: int | None = None,
) -> ExchangePlan:
    """The exchange plan for this many trainers; `samples_per_pass` is required if `needs_samples_per_pass` is true."""
    check_settings(opt, parameters)
    _check_samples_per_pass(opt, parameters, samples_per_pass)
    every = opt.num_batches_per_send_parameter
    # A single trainer does not wait.
    meet = "synchronous" if opt.algorithm == "sgd" or trainers == 1 else "asynchronous"
    options = {"settings": asdict(_with_discard_ratio(opt)), "samples_per_pass": samples_per_pass}
    if every == 1:
        rule = RuleSpec("paddle", {**options, "parameters": _attributes(parameters)}, GRADIENTS)
        return ExchangePlan("gradients", 1, meet, rule)
    if opt.center_parameter_update_method == "average":
        return ExchangePlan("updates", every, meet, RuleSpec("paddle_changes", options, CHANGES))
    return ExchangePlan("weights", every, meet, RuleSpec("elastic", {"alpha": _alpha(opt, trainers)}))


def optimizer_of(
    opt: OptimizationConfig,
    parameters: Sequence[ParameterConfig],
    trainers: int,
    *,
    samples_per_pass: int | None = None,
) -> PaddleOptimizer:
    """Returns the optimizer for a trainer's own steps, with which a single model is compiled."""
    check_settings(opt, parameters)
    # The average is the servers' matter.
    _check_samples_per_pass(replace(opt, average_window=0.0), parameters, samples_per_pass)
    return PaddleOptimizer(
        opt.learning_rate,
        asdict(opt),
        _attributes(parameters),
        samples_per_step=opt.batch_size * trainers,
        samples_per_pass=samples_per_pass,
    )


def needs_samples_per_pass(opt: OptimizationConfig, parameters: Sequence[ParameterConfig]) -> bool:
    """Returns whether the rows of a pass have to be known before training: a pass is counted by them."""
    return any(_what_goes_by_passes(opt, parameters))


def check_settings(opt: OptimizationConfig, parameters: Sequence[ParameterConfig]) -> None:
    """Refuse what is unknown, contradicts itself or has no meaning here."""
    if opt.algorithm == "owlqn":
        raise PlanError(
            "`algorithm` must be one of 'sgd', 'async_sgd'. Received: 'owlqn', for which Paddle itself had no updater. "
            "For sparse weights, use 'sgd' with decay_rate_l1 on the parameters."
        )
    for name, known in (
        ("algorithm", ALGORITHMS),
        ("learning_method", METHODS),
        ("center_parameter_update_method", CENTERS),
    ):
        if getattr(opt, name) not in known:
            raise PlanError(one_of(name, getattr(opt, name), known))
    check_schedule(opt)
    _check_numbers(opt)
    _check_local_steps(opt)
    for parameter in parameters:
        if not parameter.is_static:
            _check_parameter(opt, parameter)


def _check_numbers(opt: OptimizationConfig) -> None:
    for name in ("batch_size", "num_batches_per_send_parameter"):
        value = getattr(opt, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise PlanError(f"`{name}` must be a whole number of at least 1. Received: {value!r}.")
    if opt.max_average_window is not None and opt.max_average_window < 1:
        raise PlanError(f"`max_average_window` must be at least 1 update. Received: {opt.max_average_window!r}.")
    for name in ("average_window", "delta_add_rate"):
        if getattr(opt, name) < 0:
            raise PlanError(f"`{name}` must not be negative. Received: {getattr(opt, name)!r}.")
    for name, instead in (
        ("num_batches_per_get_parameter", "Trainers get parameters as often as num_batches_per_send_parameter says."),
        ("shrink_parameter_value", "To shrink parameters, give them decay_rate_l1."),
    ):
        usual = getattr(OptimizationConfig(batch_size=1), name)
        if getattr(opt, name) != usual:
            raise PlanError(f"`{name}` must be left at {usual!r}. Received: {getattr(opt, name)!r}. {instead}")


def _check_local_steps(opt: OptimizationConfig) -> None:
    local = opt.num_batches_per_send_parameter > 1
    elastic = opt.center_parameter_update_method == "elastic_average"
    if elastic and not local:
        raise PlanError(
            "center_parameter_update_method='elastic_average' must come with num_batches_per_send_parameter above 1: "
            "there is no center between steps that all take together. Received: "
            f"num_batches_per_send_parameter={opt.num_batches_per_send_parameter!r}."
        )
    if elastic and opt.average_window > 0:
        raise PlanError(
            "`average_window` must be left out with center_parameter_update_method='elastic_average', whose center is "
            f"an average already. Received: {opt.average_window!r}. Or use 'average'."
        )


def _check_parameter(opt: OptimizationConfig, parameter: ParameterConfig) -> None:
    own, every = Attributes.of(parameter), opt.num_batches_per_send_parameter
    if own.momentum and own.is_proximal:
        raise PlanError(
            f"The parameter {parameter.name!r} must have momentum 0 with {_apart(own)}: its decay is a step behind the "
            f"update. Received: momentum={own.momentum!r}. Leave out the momentum, or the decay."
        )
    if own.is_proximal and every > 1 and every % own.num_batches_regularization:
        raise PlanError(
            f"num_batches_regularization of the parameter {parameter.name!r} must divide "
            f"num_batches_per_send_parameter={every}. Received: {own.num_batches_regularization!r}."
        )


def _apart(own: Attributes) -> str:
    """Why the decay of a parameter is its own step."""
    if own.decay_rate_l1 > 0:
        return f"decay_rate_l1={own.decay_rate_l1!r}"
    return "sparse_update" if own.is_sparse else f"num_batches_regularization={own.num_batches_regularization}"


def _check_samples_per_pass(
    opt: OptimizationConfig, parameters: Sequence[ParameterConfig], samples_per_pass: int | None
) -> None:
    found = next(_what_goes_by_passes(opt, parameters), None)
    if samples_per_pass is None and found is not None:
        raise PlanError(f"`samples_per_pass` must be given with {found}. Received: None. Count the rows of a pass.")
    if samples_per_pass is not None and samples_per_pass < 1:
        raise PlanError(f"`samples_per_pass` must be at least 1. Received: {samples_per_pass!r}.")


def _what_goes_by_passes(opt: OptimizationConfig, parameters: Sequence[ParameterConfig]) -> Iterator[str]:
    if counts_passes(opt):
        yield "learning_rate_schedule='pass_manual'"
    if opt.average_window > 0:
        yield f"average_window={opt.average_window!r}"
    for parameter in parameters:
        own = Attributes.of(parameter)
        if own.is_proximal and own.num_batches_regularization > 1 and not parameter.is_static:
            yield f"num_batches_regularization={own.num_batches_regularization} of the parameter {parameter.name!r}"


def _alpha(opt: OptimizationConfig, trainers: int) -> float:
    alpha = opt.delta_add_rate / trainers
    if not 0 < alpha < 1:
        raise PlanError(
            "`delta_add_rate` must be above 0 and less than the number of trainers with "
            "center_parameter_update_method='elastic_average': over the trainers it is how far a trainer and the "
            f"center move towards each other. Received: {opt.delta_add_rate!r}, with {trainers} trainer(s). Lower it, "
            "or use 'average'."
        )
    return alpha


def _with_discard_ratio(opt: OptimizationConfig) -> OptimizationConfig:
    ratio = opt.async_lagged_grad_discard_ratio
    if ratio > 1.0:
        return opt
    if opt.algorithm == "async_sgd":
        logger.warning(
            "async_lagged_grad_discard_ratio=%r is not above 1: it is set to %r.", ratio, _USUAL_DISCARD_RATIO
        )
    return replace(opt, async_lagged_grad_discard_ratio=_USUAL_DISCARD_RATIO)


def _attributes(parameters: Sequence[ParameterConfig]) -> Mapping[str, dict[str, Any]]:
    return {each.name: Attributes.of(each).to_json() for each in parameters if not each.is_static}
