"""BigDL's criteria as losses that NNFrames train with. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.nn.criterion import Criterion
from keraunos.compat.zoo.bigdl.nn.criterion_losses import CriterionLoss, counts_from_one, loss_for
from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

_CLASSES = ("ClassNLLCriterion", "CrossEntropyCriterion")


@keras.saving.register_keras_serializable(PACKAGE)
class FrameLoss(CriterionLoss):
    """A criterion for a column of labels: one number is compared with all of a row's outputs."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the criterion of each row."""
        outputs = keras.ops.shape(y_pred)
        if (
            self.criterion not in _CLASSES
            and len(y_true.shape) == 2
            and y_true.shape[-1] == 1
            and len(y_pred.shape) == 2
        ):
            y_true = keras.ops.broadcast_to(y_true, outputs)
        return super().call(y_true, y_pred)


def loss_of(criterion: Any) -> Any:
    """Returns the loss for a BigDL criterion, or a Keras loss unchanged."""
    if isinstance(criterion, (str, keras.losses.Loss)):
        return criterion
    if not isinstance(criterion, Criterion):
        raise ModelError(
            f"`criterion` must be one of bigdl.nn.criterion's, a loss of Keras, or its name. Received: {criterion!r}."
        )
    found = loss_for(criterion)
    return FrameLoss(found.criterion, found.options, name="loss")


def has_classes(criterion: Any) -> bool:
    """Returns whether the labels of a criterion are classes that count from 1."""
    return isinstance(criterion, Criterion) and counts_from_one(criterion)
