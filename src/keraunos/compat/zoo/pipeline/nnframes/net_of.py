"""Whatever a program calls a model, as what is trained and served. Runs on the driver."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from keraunos.compat.zoo.bigdl.nn.loading import LoadedModule
from keraunos.compat.zoo.bigdl.nn.module import Layer
from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet, Sequential, net_around
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.compat.zoo.tfpark.tfnet import TFNet
from keraunos.errors import ModelError

Shapes = list[tuple[int | None, ...]]


@in_tensorflow_2
def net_of(model: Any) -> Any:
    """Returns the model; a TFNet, or a model of Keras, inside of one of zoo.pipeline.api.keras."""
    import keras

    if isinstance(model, (KerasNet, Layer)):
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
        "`model` must be a Sequential or Model of zoo.pipeline.api.keras.models, a module of bigdl.nn.layer, a model "
        "of Keras, or a TFNet. "
        f"Received: {model!r}."
    )


@in_tensorflow_2
def keras_model(net: Any, shapes: Callable[[], Shapes]) -> Any:
    """Returns the model of Keras that has the net's weights.

    `shapes` returns the shapes of a record's arrays, if needed.
    """
    if isinstance(net, Layer):
        return net.lowered(net._shapes or shapes())
    if not net.model.built:
        raise ModelError(
            "`model` must know the shape of its input. Received: layers without one. Give the first layer "
            "`input_shape`."
        )
    return net.model


@in_tensorflow_2
def cloned(net: Any, shapes: Callable[[], Shapes]) -> Any:
    """Returns a copy of a net with the same weights."""
    if isinstance(net, Layer):
        return LoadedModule(copied_model(keras_model(net, shapes)))
    made = copy.copy(net)
    made.model = copied_model(keras_model(net, shapes))
    return made


@in_tensorflow_2
def copied_model(model: Any) -> Any:
    """Returns a copy of a Keras model with the same weights."""
    from keraunos.learners.keras_archive import from_archive, live_modules, to_archive

    return from_archive(to_archive(model), trusted=live_modules(model))
