"""BigDL's criteria as losses that Keras trains with. Runs on the driver and on workers.

Classes count from 1, as everywhere in NNFrames.
"""

from __future__ import annotations

from typing import Any

from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

# Those whose labels are classes.
CLASSES = ("ClassNLLCriterion", "CrossEntropyCriterion")
CRITERIA = ("AbsCriterion", "BCECriterion", *CLASSES, "MSECriterion")


@keras.saving.register_keras_serializable(package="keraunos.zoo")
class CriterionLoss(keras.losses.Loss):  # type: ignore[misc]  # Keras is untyped
    """One of BigDL's criteria, by its name; `log_prob` says whether a ClassNLLCriterion is given logarithms."""

    def __init__(self, criterion: str, log_prob: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.criterion = criterion
        self.log_prob = log_prob

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each row."""
        ops = keras.ops
        if self.criterion in CLASSES:
            given = y_pred if self.log_prob else ops.log(ops.maximum(y_pred, 1e-8))
            if self.criterion == "CrossEntropyCriterion":
                given = ops.log_softmax(y_pred, axis=-1)
            classes = ops.reshape(ops.cast(y_true, "int32"), (-1,)) - 1
            return -ops.sum(given * ops.one_hot(classes, ops.shape(given)[-1], dtype=given.dtype), axis=-1)
        truth = ops.cast(y_true, y_pred.dtype)
        if len(truth.shape) < len(y_pred.shape):
            truth = ops.expand_dims(truth, -1)
        if self.criterion == "BCECriterion":
            chance = ops.clip(y_pred, 1e-12, 1 - 1e-7)
            errors = -(truth * ops.log(chance) + (1 - truth) * ops.log(1 - chance))
        elif self.criterion == "MSECriterion":
            errors = ops.square(y_pred - truth)
        else:
            errors = ops.abs(y_pred - truth)
        return ops.mean(ops.reshape(errors, (ops.shape(errors)[0], -1)), axis=-1)

    def get_config(self) -> dict[str, Any]:
        """What makes the loss again."""
        return {**super().get_config(), "criterion": self.criterion, "log_prob": self.log_prob}


def loss_of(criterion: Any) -> Any:
    """The loss for a criterion of BigDL's, or a loss of Keras as it is."""
    if isinstance(criterion, (str, keras.losses.Loss)):
        return criterion
    name = type(criterion).__name__
    if name not in CRITERIA:
        raise ModelError(
            f"`criterion` must be one of bigdl.nn.criterion's {', '.join(CRITERIA)}, a loss of Keras, or its name. "
            f"Received: {criterion!r}."
        )
    return CriterionLoss(name, bool(getattr(criterion, "log_prob_as_input", True)), name=name)


def has_classes(criterion: Any) -> bool:
    """Whether the labels of a criterion are classes that count from 1."""
    return type(criterion).__name__ in CLASSES
