"""BigDL's criteria as losses of Keras; classes are counted from 1. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.nn import criterion as criteria
from keraunos.compat.zoo.class_labels import Classes
from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import JobError, one_of
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
import numpy as np  # noqa: E402 - the same
import tensorflow as tf  # noqa: E402 - the same
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class CriterionLoss(keras.losses.Loss):  # type: ignore[misc]  # Keras is untyped
    """A criterion: a number for each row.

    Args:
        criterion: its name in `ROWS`.
        options: its arguments.
        named: name and the like.
    """

    def __init__(self, criterion: str, options: Mapping[str, Any] | None = None, **named: Any) -> None:
        super().__init__(**named)
        self.criterion = criterion
        self.options = dict(options or {})

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the criterion of each row."""
        found = ROWS[self.criterion](y_pred, y_true, **self.options)
        rows = ops.mean(ops.reshape(found, (ops.shape(y_pred)[0], -1)), axis=-1)
        known = self.classes(y_pred.shape[-1])
        return rows if known is None else known.counted(rows, ops.cast(ops.reshape(y_true, (-1,)), "int32"))

    def classes(self, count: int) -> Classes | None:
        """Returns the labels that it takes, where they are classes; those of rows that do not count are -1."""
        return Classes(1, count, -1) if self.criterion in _OF_CLASSES else None

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the loss is made again."""
        return {**super().get_config(), "criterion": self.criterion, "options": self.options}


def loss_for(criterion: Any) -> CriterionLoss:
    """Returns the loss of Keras for one of BigDL's criteria."""
    name = type(criterion).__name__
    if not isinstance(criterion, criteria.Criterion) or name not in ROWS:
        raise JobError(one_of("criterion", name, ROWS))
    options = {}
    if isinstance(criterion, criteria.ClassNLLCriterion):
        options["logs"] = criterion.log_prob_as_input
    return CriterionLoss(name, options, name="loss")


@in_tensorflow_2
def mean_and_gradient(criterion: Any, outputs: Any, labels: Any) -> tuple[float, Array]:
    """Returns a criterion's mean over rows, and its gradient by the outputs; an output of one dimension is one row."""
    array = np.asarray(outputs, dtype=np.float32)
    rows = tf.constant(array if array.ndim > 1 else array[np.newaxis])
    loss, given = loss_for(criterion), np.asarray(labels, dtype=np.float32)
    known = loss.classes(rows.shape[-1])
    if known is not None:
        known.check(given)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        found = loss.call(tf.constant(given), rows)
        count = found.shape[0] if known is None else np.count_nonzero(given != known.padding)
        found = tf.reduce_sum(found) / max(count, 1)
    return float(found), tape.gradient(found, rows).numpy().reshape(array.shape)


def counts_from_one(method: Any) -> bool:
    """Returns whether a validation method's labels are classes, which modules count from 1."""
    inner = getattr(method, "criterion", method)
    return type(inner).__name__ in _OF_CLASSES


def _of_class(output: Any, label: Any) -> Any:
    classes = ops.cast(ops.reshape(label, (-1,)), "int32") - 1
    return ops.sum(output * ops.one_hot(classes, output.shape[-1], dtype=output.dtype), axis=-1)


def _negative_log(output: Any, label: Any, *, logs: bool = True) -> Any:
    picked = _of_class(output, label)
    return -picked if logs else -ops.log(ops.maximum(picked, 1e-8))


def _alike(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Returns a function of output and label of one shape."""

    def call(output: Any, label: Any) -> Any:
        return function(output, ops.reshape(ops.cast(label, output.dtype), ops.shape(output)))

    return call


def _binary(output: Any, label: Any) -> Any:
    return -(label * ops.log(output + 1e-12) + (1 - label) * ops.log(1 - output + 1e-12))


ROWS: Mapping[str, Callable[..., Any]] = {
    "ClassNLLCriterion": _negative_log,
    "CrossEntropyCriterion": lambda output, label: -_of_class(ops.log_softmax(output, axis=-1), label),
    "MSECriterion": _alike(lambda output, label: ops.square(output - label)),
    "AbsCriterion": _alike(lambda output, label: ops.abs(output - label)),
    "BCECriterion": _alike(_binary),
}
_OF_CLASSES = frozenset(
    {"ClassNLLCriterion", "CrossEntropyCriterion", "Top1Accuracy", "Accuracy", "Top5Accuracy", "TreeNNAccuracy"}
)
