"""Which metrics an old program means, and of which output. Runs on the driver.

Until Keras 0.2 `class_mode` determined the accuracy; from 0.3 on the width of the output does, and from 1.0 to 2.3
also the loss: with a binary cross entropy each output is right or wrong by itself. Today width and labels determine it.
A metric without the name of an output was of each output.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import keras

from keraunos.compat.old_keras import own_metrics
from keraunos.compat.old_keras.days import Day
from keraunos.compat.run_unchanged.shadows import is_programs
from keraunos.errors import JobError, one_of

_MODES = ("categorical", "binary")
_modes: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_names: WeakKeyDictionary[Any, list[str]] = WeakKeyDictionary()
# The names in old histories, if today's name differs.
_CALLED: Mapping[str, str] = {"kl_divergence": "kullback_leibler_divergence", "cosine_similarity": "cosine_proximity"}


def say_mode(model: Any, mode: Any) -> None:
    """Note the `class_mode` that a model was compiled with."""
    if mode not in _MODES:
        raise JobError(one_of("class_mode", mode, _MODES))
    _modes[model] = mode


def mode_of(model: Any) -> str | None:
    """Returns the `class_mode` that a model was compiled with, if given."""
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
    metric = own_metrics.BatchMetric("accuracy" if mode is None else f"{mode}_accuracy", name="acc")
    keras.Model.compile(model, optimizer=model.optimizer, loss=model.loss, metrics=[metric])
    _names[model] = ["loss", "acc"]


def measured(model: Any, metrics: Any, loss: Any, day: Day) -> Any:
    """Returns the metrics as Keras takes them today, computed as on that day, for each output."""
    if day.name == "tf2":
        return metrics
    outputs = outputs_of(model)
    losses = _for_outputs(loss, outputs)
    found = [[_metric(each, losses[i], day) for each in told] for i, told in enumerate(_told(metrics, outputs))]
    _names[model] = _named(outputs, found)
    if not any(found):
        return None
    return found if len(outputs) > 1 else found[0]


def loss_of_outputs(model: Any, loss: Any, day: Day) -> Any:
    """Returns the loss, once for each output where one was for all."""
    outputs = outputs_of(model)
    if day.name == "tf2" or len(outputs) < 2 or isinstance(loss, (Mapping, list, tuple)):
        return loss
    return [loss] * len(outputs)


def weights_of_outputs(model: Any, weights: Any, loss: Any) -> Any:
    """Returns the weights of losses in the losses' order; an output without one weighs 1."""
    if isinstance(weights, Mapping):
        names = outputs_of(model)
        unknown = [name for name in weights if name not in names]
        if unknown:
            raise JobError(one_of("output in `loss_weights`", unknown[0], names))
        by_name = {name: float(weights.get(name, 1.0)) for name in names}
        return by_name if isinstance(loss, Mapping) else list(by_name.values())
    return weights


def outputs_of(model: Any) -> list[str]:
    """Returns the names of a model's outputs; one without a name if they are not known yet."""
    try:
        return [str(name) for name in model.output_names]
    except (AttributeError, TypeError, ValueError):
        return [""]


def in_order(model: Any, found: Any) -> Any:
    """Converts results by name to the list of old Keras, or to the loss alone if there is nothing else."""
    names = _names.get(model)
    if not isinstance(found, Mapping):
        return found
    known = names if names is not None and set(names) == set(found) else list(found)
    return [found[name] for name in known] if len(known) > 1 else found[known[0]]


def orders(model: Any) -> bool:
    """Returns whether the model was compiled as on that day, so that the order of its results is known."""
    return model in _names


def _metrics_names(model: Any) -> list[str]:
    names = _names.get(model)
    if names is not None and is_programs(sys._getframe(1).f_globals) is not False:
        return list(names)
    return [metric.name for metric in model.metrics]


# An attribute of one object does not hide a property of its class.
keras.Model.metrics_names = property(_metrics_names)


def _named(outputs: Sequence[str], metrics: Sequence[Sequence[Any]]) -> list[str]:
    several = len(outputs) > 1
    names = ["loss", *(f"{name}_loss" for name in outputs if several)]
    for output, found in zip(outputs, metrics, strict=True):
        names += [f"{output}_{each.name}" if several else each.name for each in found if hasattr(each, "name")]
    return names


def _told(metrics: Any, outputs: Sequence[str]) -> list[list[Any]]:
    """Returns the metrics of each output."""
    if isinstance(metrics, Mapping):
        unknown = [name for name in metrics if name not in outputs]
        if unknown and outputs != [""]:
            raise JobError(one_of("output in `metrics`", unknown[0], outputs))
        by_name = [metrics.get(name) for name in outputs] if outputs != [""] else list(metrics.values())[:1]
        return [_listed(each) for each in by_name]
    if len(outputs) > 1 and isinstance(metrics, (list, tuple)) and any(isinstance(each, list) for each in metrics):
        if len(metrics) != len(outputs):
            raise JobError(
                f"`metrics` must have a list for each of the {len(outputs)} outputs, {', '.join(outputs)}. Received: "
                f"{len(metrics)} of them."
            )
        return [_listed(each) for each in metrics]
    return [_listed(metrics) for _ in outputs]


def _listed(metrics: Any) -> list[Any]:
    if metrics is None:
        return []
    return list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]


def _for_outputs(loss: Any, outputs: Sequence[str]) -> list[Any]:
    if isinstance(loss, Mapping):
        return [loss.get(name) for name in outputs] if outputs != [""] else list(loss.values())[:1]
    if isinstance(loss, (list, tuple)):
        return [*loss, *[None] * len(outputs)][: len(outputs)]
    return [loss] * len(outputs)


def _metric(value: Any, loss: Any, day: Day) -> Any:
    if isinstance(value, (keras.metrics.Metric, type, Mapping)):
        return value
    name = value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
    if isinstance(value, str) and value in {"acc", "accuracy"}:
        fn, name = _accuracy_by(loss), day.accuracy
    elif name in own_metrics.FUNCTIONS and (isinstance(value, str) or own_metrics.FUNCTIONS[name] is value):
        fn = name
    else:
        fn = keras.metrics.get(value)
        if isinstance(fn, keras.metrics.Metric):
            return fn
    return own_metrics.BatchMetric(fn, name=_CALLED.get(name, name), masked=day.speaks_keras_2)


def _accuracy_by(loss: Any) -> str:
    """Returns the accuracy that 'accuracy' is beside a loss."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", "") if loss in _KERAS_LOSSES else ""
    by_name = {"binary_crossentropy": "binary", "sparse_categorical_crossentropy": "sparse_categorical"}
    return f"{by_name[name]}_accuracy" if name in by_name else "accuracy"


_KERAS_LOSSES = (keras.losses.binary_crossentropy, keras.losses.sparse_categorical_crossentropy)
