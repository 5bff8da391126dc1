"""From SparkFlow's ways to name an optimizer to a rule on the parameter server. Runs on the driver.

An optimizer comes as one of ten names with TensorFlow's options in JSON, or as an object of `tf.train`. Either way it
becomes a `RuleSpec` that holds every option, TensorFlow's defaults included.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.errors import JobError, one_of
from keraunos.job.rule_spec import RuleSpec, register_rule

logger = logging.getLogger(__name__)

# SparkFlow's own.
DEFAULT_RATE = 0.01

_HOME = "keraunos.compat.sparkflow.rules"
_PREFIX = "tf1_"


@dataclass(frozen=True)
class _Known:
    """One of the ten: its class in `tf.train`, ours in `rules.py`, and its options with TensorFlow's defaults.

    A learning rate that TensorFlow has no default for is `None`.
    """

    tensorflow: str
    rule: str
    options: Mapping[str, Any]


_STRENGTHS: Mapping[str, float] = {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}

OPTIMIZERS: Mapping[str, _Known] = {
    "adam": _Known(
        "AdamOptimizer", "TensorFlowAdam", {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    ),
    "rmsprop": _Known(
        "RMSPropOptimizer",
        "TensorFlowRMSProp",
        {"learning_rate": None, "decay": 0.9, "momentum": 0.0, "epsilon": 1e-10, "centered": False},
    ),
    "momentum": _Known(
        "MomentumOptimizer", "TensorFlowMomentum", {"learning_rate": None, "momentum": 0.9, "use_nesterov": False}
    ),
    "adadelta": _Known(
        "AdadeltaOptimizer", "TensorFlowAdadelta", {"learning_rate": 0.001, "rho": 0.95, "epsilon": 1e-8}
    ),
    "adagrad": _Known(
        "AdagradOptimizer", "TensorFlowAdagrad", {"learning_rate": None, "initial_accumulator_value": 0.1}
    ),
    "gradient_descent": _Known("GradientDescentOptimizer", "TensorFlowGradientDescent", {"learning_rate": None}),
    "adagrad_da": _Known(
        "AdagradDAOptimizer",
        "TensorFlowAdagradDA",
        {"learning_rate": None, "initial_gradient_squared_accumulator_value": 0.1, **_STRENGTHS},
    ),
    "ftrl": _Known(
        "FtrlOptimizer",
        "TensorFlowFtrl",
        {
            "learning_rate": None,
            "learning_rate_power": -0.5,
            "initial_accumulator_value": 0.1,
            **_STRENGTHS,
            "l2_shrinkage_regularization_strength": 0.0,
            "beta": 0.0,
        },
    ),
    "proximal_adagrad": _Known(
        "ProximalAdagradOptimizer",
        "TensorFlowProximalAdagrad",
        {"learning_rate": None, "initial_accumulator_value": 0.1, **_STRENGTHS},
    ),
    "proximal_gradient_descent": _Known(
        "ProximalGradientDescentOptimizer", "TensorFlowProximalGradientDescent", {"learning_rate": None, **_STRENGTHS}
    ),
}

# What SparkFlow's own helper calls an option that TensorFlow calls otherwise.
_ALIASES = {"initial_accumulator": "initial_accumulator_value"}
# Options of TensorFlow's that have no meaning here.
_REFUSED = {
    "name": "no operations are made that it could name: leave it out",
    "accum_name": "no variables are made that it could name: leave it out",
    "linear_name": "no variables are made that it could name: leave it out",
    "use_own_namescope_for_non_slot_vars": "no variables are made that it could name: leave it out",
    "global_step": "the parameter server counts its own steps: leave it out",
}
_SWITCHES = {"use_locking", "use_nesterov", "centered"}
_LOW = {"learning_rate_power": -math.inf}
_HIGH = {"beta1": 1.0, "beta2": 1.0, "decay": 1.0, "rho": 1.0, "momentum": 1.0, "learning_rate_power": 0.0}
_ABOVE_ZERO = {"learning_rate", "initial_accumulator_value", "initial_gradient_squared_accumulator_value"}

for _name, _known in OPTIMIZERS.items():
    register_rule(f"{_PREFIX}{_name}", f"{_HOME}:{_known.rule}")


def check_name(name: Any) -> str:
    """Returns the name of one of the ten optimizers; any other is refused."""
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise JobError(one_of("tfOptimizer", name, OPTIMIZERS))
    return name


def read_options(text: Any) -> dict[str, Any]:
    """Returns the options in a JSON text, or in a mapping."""
    options = text
    if isinstance(text, str):
        try:
            options = json.loads(text)
        except ValueError as error:
            raise JobError(
                f"`optimizerOptions` must be JSON, as build_adam_config() of graph_utils makes it: {error}. "
                f"Received: {text!r}."
            ) from error
    if not isinstance(options, Mapping):
        raise JobError(f"`optimizerOptions` must be a JSON object of options by name. Received: {text!r}.")
    return dict(options)


def rule_of(name: str, learning_rate: float | None = None, options: Mapping[str, Any] | None = None) -> RuleSpec:
    """Returns the rule for one of the ten names.

    Options come from `options`, then from TensorFlow's defaults. The learning rate among them goes before the one that
    is given beside them, as in SparkFlow; without either it is TensorFlow's own, or SparkFlow's if that has none.
    """
    known = OPTIMIZERS[check_name(name)]
    given = {_ALIASES.get(each, each): value for each, value in (options or {}).items()}
    locking = given.pop("use_locking", False)
    for each, value in given.items():
        if each in _REFUSED:
            raise JobError(f"`optimizerOptions` must not hold {each!r}: {_REFUSED[each]}. Received: {value!r}.")
        if each not in known.options:
            raise JobError(one_of(f"optimizerOptions for {name!r}", each, (*known.options, "use_locking")))
    if "learning_rate" in given and learning_rate not in (None, given["learning_rate"]):
        logger.warning(
            "tfLearningRate=%r gives way to the learning_rate=%r in optimizerOptions.",
            learning_rate, given["learning_rate"],
        )  # fmt: skip
    rate = known.options["learning_rate"] if learning_rate is None else learning_rate
    given.setdefault("learning_rate", DEFAULT_RATE if rate is None else rate)
    complete = {**known.options, **given, "use_locking": locking}
    for each, value in complete.items():
        _check_option(name, each, value)
    return RuleSpec(f"{_PREFIX}{name}", complete)


def rule_of_optimizer(optimizer: Any) -> RuleSpec:
    """Returns the rule for an optimizer of `tf.train`, one of the ten names, or a result of `build_optimizer`."""
    if isinstance(optimizer, RuleSpec):
        return optimizer
    if isinstance(optimizer, str):
        return rule_of(optimizer, DEFAULT_RATE)
    for name, known in OPTIMIZERS.items():
        if type(optimizer).__name__ == known.tensorflow:
            read = {option: _attribute(optimizer, option) for option in known.options}
            return rule_of(name, options={**read, "use_locking": bool(optimizer._use_locking)})
    classes = ", ".join(known.tensorflow for known in OPTIMIZERS.values())
    raise JobError(
        f"`optimizer` must be one of {classes} of tf.train (tensorflow.compat.v1.train), or one of the names "
        f"{', '.join(map(repr, OPTIMIZERS))}. Received: {optimizer!r}."
    )


def locks(rule: RuleSpec) -> bool:
    """Returns whether the optimizer itself asks for updates that do not overlap."""
    return bool(rule.option("use_locking"))


def _attribute(optimizer: Any, option: str) -> Any:
    """Returns the arguments of the optimizer; the classes of `tf.train` store them under two spellings."""
    value = getattr(optimizer, f"_{option}", None)
    if value is None and option == "learning_rate":
        value = optimizer._lr
    value = value() if callable(value) else value
    if not isinstance(value, bool | int | float):
        raise JobError(
            f"`{option}` of the optimizer must be a number, since it is applied outside of the graph. Received: "
            f"{value!r}. Give a number."
        )
    return value


def _check_option(optimizer: str, name: str, value: Any) -> None:
    where = f"`{name}` of the optimizer {optimizer!r}"
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise JobError(f"{where} must be true or false. Received: {value!r}.")
        return
    low, high = _LOW.get(name, 0.0), _HIGH.get(name, math.inf)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    may_be_zero = name not in _ABOVE_ZERO or (optimizer == "ftrl" and name != "learning_rate")
    if not number or not low <= value <= high or (value == 0 and not may_be_zero):
        bounds = "above 0" if not may_be_zero else f"from {low:g} to {high:g}"
        raise JobError(f"{where} must be a number {bounds}. Received: {value!r}.")
