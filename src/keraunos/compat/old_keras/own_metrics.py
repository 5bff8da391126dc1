"""Metrics as old Keras computed them, as a registered class. Runs on the driver and on workers.

A metric was a function, whose value for a batch counted by the batch's rows. Labels of one dimension were made a column
before, and numbers of the output's type. Keras 0 and 1 computed it over all entries, Keras 2 over those that a mask
leaves. Models that hold one name this module, which every worker can import.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import keras
from keras import ops

from keraunos.compat.old_keras.own_layers import PACKAGE


def binary_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns the share of outputs that are the label when they are rounded; today they are compared with a half."""
    return ops.mean(_same(y_true, ops.round(y_pred)), axis=-1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns whether the largest output is where the largest label is."""
    return _same(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1))


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns whether the largest output is at the number that the label is."""
    numbers = ops.max(y_true, axis=-1) if len(y_true.shape) == len(y_pred.shape) else y_true
    return _same(numbers, ops.argmax(y_pred, axis=-1))


def accuracy(y_true: Any, y_pred: Any) -> Any:
    """Returns the meaning of 'accuracy' if the loss did not determine it: of each output alone if there is one."""
    return (binary_accuracy if y_pred.shape[-1] == 1 else categorical_accuracy)(y_true, y_pred)


# By name, so that the configuration of a metric holds no function but those of the program.
FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    each.__name__: each for each in (accuracy, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy)
}


@keras.saving.register_keras_serializable(PACKAGE)
class BatchMetric(keras.metrics.Metric):  # type: ignore[misc]  # Keras is used untyped
    """The mean over batches of a function's value, by their rows.

    Args:
        fn: of labels and outputs; or the name of one in `FUNCTIONS`.
        name: what the history calls it.
        masked: whether what a mask hides counts not.
        dtype: the type of the sums.
    """

    def __init__(self, fn: Any, name: str, masked: bool = False, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.fn = fn
        self.masked = masked
        self.total = self.add_variable(shape=(), initializer="zeros", name="total")
        self.count = self.add_variable(shape=(), initializer="zeros", name="count")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch; weights were of the loss alone."""
        labels = ops.cast(y_true, y_pred.dtype)
        if len(labels.shape) == 1 and len(y_pred.shape) > 1:
            labels = ops.expand_dims(labels, -1)
        fn = FUNCTIONS[self.fn] if isinstance(self.fn, str) else self.fn
        value = ops.cast(fn(labels, y_pred), self.dtype)
        mask = _mask_of(y_pred) if self.masked else None
        rows = ops.cast(ops.shape(y_pred)[0], self.dtype)
        self.total.assign_add(rows * (ops.mean(value) if mask is None else _left(value, mask)))
        self.count.assign_add(rows)

    def merge_state(self, metrics: Iterable[Any]) -> None:
        """Add the sums of others."""
        for each in metrics:
            self.total.assign_add(each.total)
            self.count.assign_add(each.count)

    def result(self) -> Any:
        """Returns the mean over all rows that were counted."""
        return ops.divide_no_nan(self.total, self.count)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the metric is made again.

        Keras serializes the function where it writes them.
        """
        return {**super().get_config(), "fn": self.fn, "masked": self.masked}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """Returns the metric of a configuration."""
        fn = config["fn"]
        read = keras.saving.deserialize_keras_object(fn) if isinstance(fn, Mapping) else fn
        return cls(**{**config, "fn": read})


def _same(one: Any, other: Any) -> Any:
    return ops.cast(ops.equal(ops.cast(one, "float32"), ops.cast(other, "float32")), "float32")


def _mask_of(tensor: Any) -> Any:
    """Returns the mask that a layer left with its output; there is no public way to ask for it."""
    backend = importlib.import_module("keras.src.backend")
    found = getattr(backend, "get_keras_mask", None)
    return getattr(tensor, "_keras_mask", None) if found is None else found(tensor)


def _left(value: Any, mask: Any) -> Any:
    """Returns the mean of what the mask leaves."""
    weights = ops.cast(mask, value.dtype)
    if len(value.shape) < len(weights.shape):
        return ops.mean(value)  # it is of the batch already
    while len(weights.shape) < len(value.shape):
        weights = ops.expand_dims(weights, -1)
    weights = ops.broadcast_to(weights, ops.shape(value))
    return ops.divide_no_nan(ops.sum(value * weights), ops.sum(weights))
