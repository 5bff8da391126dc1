"""`Settings`: its arguments, those that are refused, and its result. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from keraunos.compat.paddle.language_values import unknown
from keraunos.compat.paddle.model_config import OptimizationConfig, settings_names
from keraunos.errors import ModelError, one_of

logger = logging.getLogger(__name__)

ALGORITHMS = ("sgd", "async_sgd")
LEARNING_METHODS = (
    "momentum", "torch_momentum", "sparse_momentum", "adagrad", "adadelta", "rmsprop", "decayed_adagrad", "adam",
    "adamax",
)  # fmt: skip
SCHEDULES = ("constant", "poly", "caffe_poly", "exp", "discexp", "linear", "manual", "pass_manual")
CENTER_METHODS = ("average", "elastic_average")

_CHOICES = {
    "algorithm": ALGORITHMS,
    "learning_method": LEARNING_METHODS,
    "learning_rate_schedule": SCHEDULES,
    "center_parameter_update_method": CENTER_METHODS,
}
_OF_OWLQN = ("l1weight", "l2weight", "l2weight_zero_iter", "c1", "backoff", "owlqn_steps", "max_backoff")
_OF_THE_TRAINER = ("save_dir", "init_model_path", "start_pass")
_WITHOUT_EFFECT = {"mini_batch_size": "`batch_size` alone counts", "usage_ratio": "all rows of the DataFrame are used"}
_AT_LEAST_ONE = ("batch_size", "num_batches_per_send_parameter", "num_batches_per_get_parameter")


def checked_settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the checked arguments of `Settings`, without those that have no effect."""
    known = {*settings_names(), *_OF_THE_TRAINER, *_WITHOUT_EFFECT}
    kept = {}
    for name, value in said.items():
        if name in _OF_OWLQN:
            raise ModelError(
                f"The setting `{name}` belongs to the algorithm 'owlqn', which is not run here. Expected a "
                f"setting of 'sgd' or 'async_sgd'. Received: {name}={value!r}. For L1 and L2 give parameters "
                f"`decay_rate_l1` and `decay_rate`."
            )
        if name not in known:
            raise ModelError(unknown("`Settings`", "setting", name, known))
        if value is None:
            continue
        if name in _WITHOUT_EFFECT:
            logger.info("The setting `%s` changes nothing: %s.", name, _WITHOUT_EFFECT[name])
            continue
        kept[name] = value if name in _OF_THE_TRAINER else _checked(name, value)
    return kept


def optimization(settings: Mapping[str, Any]) -> OptimizationConfig:
    """Returns the optimization that checked settings describe."""
    if "batch_size" not in settings:
        raise ModelError(
            "The configuration sets no `batch_size`. Expected a call of Settings(batch_size=…). "
            f"Received: {dict(settings)!r}."
        )
    made = OptimizationConfig(**{name: value for name, value in settings.items() if name in settings_names()})
    if made.learning_rate_schedule in ("manual", "pass_manual"):
        _check_segments(made.learning_rate_args)
    return made


def trainer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of the trainer, without those of the optimization."""
    return {name: value for name, value in settings.items() if name in _OF_THE_TRAINER}


def _checked(name: str, value: Any) -> Any:
    if name == "algorithm" and value == "owlqn":
        raise ModelError(
            "The algorithm 'owlqn' is not run here; Paddle's open source has no updater for it either. "
            "Expected 'sgd' or 'async_sgd'. Received: 'owlqn'. The nearest is algorithm='sgd'."
        )
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ModelError(one_of(name, value, _CHOICES[name]))
        return value
    if name == "learning_rate_args":
        return str(value)
    if name == "do_average_in_cpu":
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"The setting `{name}` must be a number. Received: {name}={value!r}.")
    if name in _AT_LEAST_ONE or name == "max_average_window":
        if value != int(value) or value < 1:
            raise ModelError(f"The setting `{name}` must be a whole number of at least 1. Received: {name}={value!r}.")
        return int(value)
    return float(value)


def _check_segments(text: str) -> None:
    try:
        segments = [(float(end), float(rate)) for end, rate in (each.split(":") for each in text.split(","))]
        ends = [end for end, _ in segments]
        if ends != sorted(ends):
            raise ValueError(text)
    except ValueError:
        raise ModelError(
            f"`learning_rate_args` must be 'n1:r1,n2:r2,…' with ascending n for a manual schedule. Received: {text!r}."
        ) from None
