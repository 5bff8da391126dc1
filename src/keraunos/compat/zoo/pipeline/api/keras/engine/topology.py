"""`zoo.pipeline.api.keras.engine.topology`: inputs, and several outputs as one. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers.computed import Computed
from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, computed, made, noted_shape, shape_of
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2, tensorflow_2
from keraunos.errors import JobError, ModelError, one_of
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["Input", "InputLayer", "KerasNet", "Merge", "merge"]  # noqa: F822 - KerasNet is found by __getattr__

_MERGES = {
    "sum": "Add",
    "mul": "Multiply",
    "ave": "Average",
    "max": "Maximum",
    "min": "Minimum",
    "sub": "Subtract",
    "div": "",
    "dot": "Dot",
    "cos": "",
    "concat": "Concatenate",
}


def Input(shape: Shape = None, name: str | None = None, bigdl_type: str = "float") -> Any:
    """Returns where a `Model` begins."""
    if bigdl_type != "float":
        raise JobError(f"`bigdl_type` must be 'float'. Received: {bigdl_type!r}.")
    with tensorflow_2():
        if isinstance(shape, list) and any(isinstance(each, (list, tuple)) for each in shape):
            return [keras.Input(each) for each in shape_of(shape)]
        return keras.Input(shape_of(shape), name=name)


def InputLayer(input_shape: Shape = None, **named: Any) -> Any:
    """Returns where a branch of a `Merge`, or a `Sequential`, begins."""
    return computed("identity", input_shape, named)


def merge(inputs: Sequence[Any], mode: str = "sum", concat_axis: int = -1, name: str | None = None) -> Any:
    """Several outputs as one."""
    return _merging(mode, concat_axis, {"name": name})(list(inputs))


@in_tensorflow_2
def Merge(
    layers: Sequence[Any] | None = None,
    mode: str = "sum",
    concat_axis: int = -1,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """The layer that `merge` applies, or, with `layers`, a model that passes each of its inputs to one of them."""
    merging = _merging(mode, concat_axis, named)
    if layers is None:
        if input_shape is not None:
            merging.zoo_input_shape = shape_of(input_shape)
        return merging
    if len(layers) < 2:
        raise JobError(f"`layers` of Merge must be at least two. Received: {len(layers)}.")
    branches = [_branch(each) for each in layers]
    given = [tensor for inputs, _ in branches for tensor in inputs]
    return keras.Model(given, merging([output for _, output in branches]), name=named.get("name"))


def __getattr__(name: str) -> Any:
    if name == "KerasNet":  # models need layers
        from keraunos.compat.zoo.pipeline.api.keras.models import KerasNet

        return KerasNet
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _merging(mode: str, concat_axis: int, named: Any) -> Any:
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode not in _MERGES:
        raise JobError(one_of("mode", mode, _MERGES))
    if mode in {"div", "cos"}:
        return computed("divide" if mode == "div" else "cosine", None, named)
    options = {"concat": {"axis": concat_axis}, "dot": {"axes": -1}}.get(mode, {})
    return made(getattr(keras.layers, _MERGES[mode]), None, named, **options)


def _branch(layer: Any) -> tuple[list[Any], Any]:
    """Returns a branch's inputs and its output."""
    model = getattr(layer, "model", layer)
    if isinstance(model, keras.Model):
        if not model.built:
            raise ModelError(
                "A branch of Merge must know the shape of its input. Received: a model whose first layer has no "
                "`input_shape`."
            )
        return list(model.inputs), model.outputs[0]
    shape = noted_shape(layer)
    if shape is None:
        raise ModelError(
            f"A branch of Merge must know the shape of its input. Received: {type(layer).__name__} without "
            "`input_shape`."
        )
    several = isinstance(shape, list)
    inputs = [keras.Input(each) for each in (shape if several else [shape])]
    if isinstance(layer, Computed) and layer.function == "identity":
        return inputs, inputs[0]
    return inputs, layer(inputs if several else inputs[0])
