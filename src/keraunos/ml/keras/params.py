"""The Params that only estimators of Keras models have. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from keraunos.ml.declaration import param
from keraunos.ml.keras.conversion import callback_list, keras_model
from keraunos.ml.params import Settings
from keraunos.ml.training_params import TrainingOptions


class HasModel(Settings):
    """What is trained."""

    model, getModel, setModel = param(
        "The compiled Keras model to train. `fit` works on a copy and leaves this one as it is.",
        keras_model("model"),
    )


class HasCallbacks(Settings):
    """What runs beside the training."""

    callbacks, getCallbacks, setCallbacks = param(
        "Keras callbacks with hooks of the training or of its epochs, such as EarlyStopping. They run on the driver.",
        callback_list("callbacks"),
        empty=[],
        read=copy,
    )


class KerasTrainingOptions(TrainingOptions, total=False):
    """The Params of estimators of Keras models as keywords of a constructor."""

    callbacks: Sequence[Any] | None
    model: Any
