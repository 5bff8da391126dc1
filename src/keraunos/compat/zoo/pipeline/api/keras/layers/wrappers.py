"""`zoo.pipeline.api.keras.layers.wrappers`. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, made, shape_of
from keraunos.errors import JobError, one_of
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["Bidirectional", "KerasLayerWrapper", "TimeDistributed"]

_MODES = ("concat", "sum", "mul", "ave")


def TimeDistributed(layer: Any, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a layer for every step."""
    return made(keras.layers.TimeDistributed, input_shape, named, getattr(layer, "model", layer))


def Bidirectional(layer: Any, merge_mode: str = "concat", input_shape: Shape = None, **named: Any) -> Any:
    """Returns a recurrent layer, forwards and backwards."""
    if merge_mode not in _MODES:
        raise JobError(one_of("merge_mode", merge_mode, _MODES))
    return made(keras.layers.Bidirectional, input_shape, named, layer, merge_mode=merge_mode)


def KerasLayerWrapper(torch_layer: Any, input_shape: Shape = None, **named: Any) -> Any:
    """Returns one of BigDL's modules as a layer; a module of several needs `input_shape`."""
    if input_shape is not None:
        given = shape_of(input_shape)
        return torch_layer.lowered(given if isinstance(given, list) else [given])
    inner = getattr(torch_layer, "_keras", None)
    if inner is None or named.get("name"):
        raise JobError(
            "KerasLayerWrapper of a container, or with a name, must have `input_shape`. Received: "
            f"{torch_layer!s} without one."
        )
    return inner
