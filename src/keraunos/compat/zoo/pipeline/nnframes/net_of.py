"""Whatever a program calls a model, as one of zoo.pipeline.api.keras. Runs on the driver."""

from __future__ import annotations

import copy
from typing import Any

from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet, Sequential, net_around
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.compat.zoo.tfnet import TFNet
from keraunos.errors import ModelError


@in_tensorflow_2
def keras_net(model: Any) -> KerasNet:
    """The model; a TFNet, or a model of Keras, inside of one."""
    import keras

    if isinstance(model, KerasNet):
        return model
    if isinstance(model, keras.Model):
        return net_around(model)
    if isinstance(model, TFNet):
        if model.row_of_input is None:
            raise ModelError(
                "A TFNet must have one input of a known rank to be used alone. Received: one with another input. Call "
                "it on Inputs in a Model of zoo.pipeline.api.keras."
            )
        return Sequential().add(model)
    raise ModelError(
        "`model` must be a Sequential or Model of zoo.pipeline.api.keras.models, a model of Keras, or a TFNet. "
        f"Received: {model!r}."
    )


@in_tensorflow_2
def cloned(net: KerasNet) -> KerasNet:
    """A model of its own that stands where this one does."""
    from keraunos.learners.keras_archive import from_archive, live_modules, to_archive

    made = copy.copy(net)
    made.model = from_archive(to_archive(net.model), trusted=live_modules(net.model))
    return made
