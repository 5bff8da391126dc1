"""`fit` as it was: what callbacks see of batches and of rows held out, and weights of classes. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keraunos.compat.old_keras import undecided
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.own_callbacks import AfterBatch, EachBatch

_AT_BATCHES = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")
# With these in a model, what is held out ended in the phase, 0 for no training.
_PHASED = (
    keras.layers.AlphaDropout,
    keras.layers.BatchNormalization,
    keras.layers.Dropout,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
)


def fit(model: Any, day: Day, given: dict[str, Any]) -> Any:
    """Train, with today's arguments."""
    return keras.Model.fit(model, **prepared(model, day, given))


def prepared(model: Any, day: Day, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of today's `fit`, whose callbacks see the same values as in old Keras."""
    if day.name != "tf2":
        given = with_columns(given)
    _settle_class_weight(given)
    _say_weights(given)
    callbacks = given.get("callbacks")
    if day.name != "tf2" and isinstance(callbacks, (list, tuple)) and callbacks:
        held = _held(model, given)
        for callback in callbacks:
            if held is not None or not hasattr(callback, "validation_data"):
                callback.validation_data = held
        if any(map(_looks_at_batches, callbacks)) and EachBatch.fits(model):
            given["callbacks"] = [EachBatch(), *callbacks, AfterBatch()]
    return given


def with_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with labels of one dimension as columns, which is what losses and metrics got."""
    found = dict(given)
    if "y" in found:
        found["y"] = _columns(found["y"])
    held = found.get("validation_data")
    if isinstance(held, (list, tuple)) and len(held) in {2, 3}:
        found["validation_data"] = (held[0], _columns(held[1]), *held[2:])
    return found


def _columns(labels: Any) -> Any:
    if isinstance(labels, Mapping):
        return {name: _columns(each) for name, each in labels.items()}
    if isinstance(labels, (list, tuple)):
        return [_columns(each) if isinstance(each, np.ndarray) else each for each in labels]
    return labels[:, None] if isinstance(labels, np.ndarray) and labels.ndim == 1 else labels


def _looks_at_batches(callback: Any) -> bool:
    if type(callback).__module__.startswith(("keras.", "keraunos.")):
        return any(name in vars(callback) for name in _AT_BATCHES)  # a LambdaCallback has them as its own
    return any(name in vars(each) for each in (*type(callback).__mro__, callback) for name in _AT_BATCHES
               if not getattr(each, "__module__", "").startswith("keras."))  # fmt: skip


def _settle_class_weight(given: dict[str, Any]) -> None:
    """A value other than a dict was ignored."""
    found = given.get("class_weight")
    if isinstance(found, str):
        undecided.warn_once(
            f"`class_weight` of fit was a dict; {found!r} had no effect in Keras 0.3 to 2.2, and has none here: "
            "classes weigh alike. Give a dict from class to weight."
        )
        given.pop("class_weight")


def _say_weights(given: Mapping[str, Any]) -> None:
    """Warn of rows with weight 0, which count as rows of a batch today, but did not in old Keras."""
    classes, rows = given.get("class_weight"), given.get("sample_weight")
    weights = list(classes.values()) if isinstance(classes, Mapping) else [] if classes is None else None
    found = [np.asarray(each, "float64") for each in (weights, rows) if each is not None and not isinstance(each, str)]
    if any(each.ndim == 1 and (each == 0).any() for each in found):
        undecided.warn_once(
            "Rows of weight 0 count among the rows of a batch in today's Keras: the loss is smaller than it was by "
            "their share. Leave the rows out for the loss of then."
        )


def _held(model: Any, given: Mapping[str, Any]) -> list[Any] | None:
    """Returns the arrays that are validated on, as callbacks had them: inputs, labels, weights and the phase."""
    held, share = given.get("validation_data"), given.get("validation_split")
    if held is None and share:
        inputs, labels = _arrays(given.get("x")), _arrays(given.get("y"))
        first = int(len(inputs[0]) * (1 - share)) if inputs else 0
        weights = given.get("sample_weight")
        held = [[each[first:] for each in inputs], [each[first:] for each in labels]]
        held += [] if weights is None else [np.asarray(weights)[first:]]
    if not isinstance(held, (list, tuple)) or len(held) not in {2, 3}:
        return None
    inputs, labels = _arrays(held[0]), [_columns(each) for each in _arrays(held[1])]
    weights = _arrays(held[2]) if len(held) == 3 else [np.ones(len(each), "float32") for each in labels]
    phase = [0.0] if any(isinstance(each, _PHASED) for each in model._flatten_layers()) else []
    return [*inputs, *labels, *weights, *phase]


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [np.asarray(each) for each in value.values()]
    several = isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], np.ndarray)
    return [np.asarray(each) for each in value] if several else [np.asarray(value)]
