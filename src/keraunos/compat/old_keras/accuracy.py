"""Which accuracy an old program means. Runs on the driver.

Until Keras 0.2 `class_mode` said it; from 0.3 on the width of the output does, and from 1.0 to 2.3 also the loss: with
a binary cross entropy each output is right or wrong by itself. Today the width alone says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import keras

from keraunos.compat.old_keras.days import Day
from keraunos.errors import JobError, one_of

_MODES = ("categorical", "binary")
_modes: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def say_mode(model: Any, mode: Any) -> None:
    """Note the `class_mode` that a model was compiled with."""
    if mode not in _MODES:
        raise JobError(one_of("class_mode", mode, _MODES))
    _modes[model] = mode


def mode_of(model: Any) -> str | None:
    """The `class_mode` that a model was compiled with, if it was told one."""
    return _modes.get(model)


def measure(model: Any) -> None:
    """Have the accuracy measured from now on, as `show_accuracy` did; the optimizer stays, with its state."""
    config = model.get_compile_config()
    if (config or {}).get("metrics"):
        return
    mode = mode_of(model)
    width = model.output_shape[-1] if model.built else None
    if mode == "categorical" and width == 1:
        raise JobError(
            "`class_mode` must be 'binary' for a model with one output. Received: 'categorical', by which every row "
            "counted as right."
        )
    metric: Any = {"binary": _binary(), "categorical": keras.metrics.CategoricalAccuracy(name="acc"), None: "acc"}[mode]
    keras.Model.compile(model, optimizer=model.optimizer, loss=model.loss, metrics=[metric])


def by_loss(metrics: Any, loss: Any, day: Day) -> Any:
    """The metrics, with an accuracy of each output by itself beside a binary cross entropy."""
    if day.name == "tf2":
        return metrics
    if _is_binary(loss):
        return _replaced(metrics)
    several = list(loss.values()) if isinstance(loss, Mapping) else loss if isinstance(loss, (list, tuple)) else []
    if not any(map(_is_binary, several)) or not _has_accuracy(metrics):
        return metrics
    if isinstance(loss, Mapping):
        told = {name: metrics.get(name) if isinstance(metrics, Mapping) else metrics for name in loss}
        return {name: _replaced(each) if _is_binary(loss[name]) else each for name, each in told.items()}
    if isinstance(metrics, Mapping):
        raise JobError(
            "`metrics` by the names of outputs must stand with a `loss` by their names, where one of the losses is "
            f"binary_crossentropy. Received: metrics={metrics!r} with a list of losses."
        )
    return [_replaced(metrics) if _is_binary(each) else metrics for each in loss]


def _is_binary(loss: Any) -> bool:
    return loss == "binary_crossentropy" or loss is keras.losses.binary_crossentropy


def _has_accuracy(metrics: Any) -> bool:
    if isinstance(metrics, Mapping):
        return any(map(_has_accuracy, metrics.values()))
    if isinstance(metrics, (list, tuple)):
        return any(map(_has_accuracy, metrics))
    return metrics in {"acc", "accuracy"} if isinstance(metrics, str) else False


def _replaced(metrics: Any) -> Any:
    if isinstance(metrics, Mapping):
        return {name: _replaced(each) for name, each in metrics.items()}
    if isinstance(metrics, (list, tuple)):
        return [_replaced(each) for each in metrics]
    return _binary() if _has_accuracy(metrics) else metrics


def _binary() -> Any:
    return keras.metrics.BinaryAccuracy(name="acc")
