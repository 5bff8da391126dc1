"""The learning rate by the samples that all trainers have seen. Runs where the parameters live, and on workers.

Samples include those of the current batch; passes count from 0. Every function takes the array namespace that it is to
compute with, numpy or `keras.ops`, so that a server and a traced step share one text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.errors import PlanError, one_of

# Methods that Paddle runs at the rate of the settings, whatever the schedule.
UNSCHEDULED = frozenset({"adagrad", "adam", "adamax"})


def rate_at(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:
    """Returns the learning rate of a batch, of which `base` is its initial value."""
    if opt.learning_method in UNSCHEDULED:
        return base
    return _SCHEDULES[opt.learning_rate_schedule](xp, opt, base, samples, passes)


def counts_passes(opt: OptimizationConfig) -> bool:
    """Returns whether the rate depends on the pass."""
    return opt.learning_rate_schedule == "pass_manual" and opt.learning_method not in UNSCHEDULED


def check_schedule(opt: OptimizationConfig) -> None:
    """Refuse a schedule that is unknown, or whose numbers it cannot compute with."""
    name = opt.learning_rate_schedule
    if name not in _SCHEDULES:
        raise PlanError(one_of("learning_rate_schedule", name, _SCHEDULES))
    if name in {"manual", "pass_manual"}:
        segments(opt.learning_rate_args)
    elif opt.learning_rate_args:
        raise PlanError(
            "`learning_rate_args` is allowed only with learning_rate_schedule='manual' or 'pass_manual'. "
            f"Received: {opt.learning_rate_args!r}, with {name!r}."
        )
    for argument, needing in (("a", {"caffe_poly", "exp", "discexp"}), ("b", {"exp", "discexp"})):
        value = getattr(opt, f"learning_rate_decay_{argument}")
        if name in needing and not value > 0:
            raise PlanError(
                f"`learning_rate_decay_{argument}` must be above 0 with learning_rate_schedule={name!r}. "
                f"Received: {value!r}. For a rate that stays, use 'constant'."
            )


@lru_cache(maxsize=64)
def segments(text: str) -> tuple[tuple[float, float], ...]:
    """`"n1:r1,n2:r2"` as pairs: up to n1 (samples, or passes) the rate is times r1, and so on."""
    try:
        found = tuple((float(end), float(factor)) for end, factor in (each.split(":") for each in text.split(",")))
    except ValueError:
        found = ()
    ends = [end for end, _ in found]
    if not found or ends != sorted(ends):
        raise PlanError(
            "`learning_rate_args` must be written 'n1:r1,n2:r2', with rising n, for the schedules 'manual' and "
            f"'pass_manual'. Received: {text!r}."
        )
    return found


def _constant(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    return base


def _poly(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    if not opt.learning_rate_decay_a or not opt.learning_rate_decay_b:
        return base
    return base * (1.0 + opt.learning_rate_decay_a * samples) ** -opt.learning_rate_decay_b


def _caffe_poly(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    left = xp.maximum(1.0 - samples / opt.learning_rate_decay_a, 0.0)
    return xp.where(samples > opt.learning_rate_decay_a, 0.0, base * left**opt.learning_rate_decay_b)


def _exp(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    return base * opt.learning_rate_decay_a ** (samples / opt.learning_rate_decay_b)


def _discexp(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    length = opt.learning_rate_decay_b
    # Samples are whole: half of one more keeps a compiled division that rounds down from coming a batch late.
    half = 0.5 if float(length).is_integer() else 0.0
    return base * opt.learning_rate_decay_a ** xp.floor((samples + half) / length)


def _linear(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    return xp.maximum(base - opt.learning_rate_decay_a * samples, opt.learning_rate_decay_b)


def _manual(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    return base * _factor(xp, opt, samples)


def _pass_manual(xp: Any, opt: OptimizationConfig, base: Any, samples: Any, passes: Any) -> Any:  # noqa: ARG001 - a schedule
    return base * _factor(xp, opt, passes)


def _factor(xp: Any, opt: OptimizationConfig, place: Any) -> Any:
    *earlier, (_, factor) = segments(opt.learning_rate_args)
    for end, before in reversed(earlier):
        factor = xp.where(place <= end, before, factor)
    return factor


_SCHEDULES: Mapping[str, Callable[..., Any]] = {
    "constant": _constant,
    "poly": _poly,
    "caffe_poly": _caffe_poly,
    "exp": _exp,
    "discexp": _discexp,
    "linear": _linear,
    "manual": _manual,
    "pass_manual": _pass_manual,
}
