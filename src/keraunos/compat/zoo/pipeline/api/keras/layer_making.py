"""From the arguments of Analytics Zoo's layers to layers of Keras. Runs on the driver.

`input_shape`, without the batch, is noted on a layer; a `Sequential` whose first layer it is reads it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.compat.zoo.tensorflow_mode import tensorflow_2
from keraunos.errors import JobError, one_of
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

from keraunos.compat.zoo.own_layers.activations import HardSigmoid, SoftMin  # noqa: E402 - the same
from keraunos.compat.zoo.own_layers.computed import Computed  # noqa: E402 - the same

Shape = Any  # a number, a tuple of numbers, or a list of those for several inputs

_ORDERINGS = {"th": "channels_first", "tf": "channels_last"}
_INITIALIZERS = {"zero": "zeros", "one": "ones", "normal": "random_normal", "uniform": "random_uniform"}
# BigDL's functions that are others in Keras today, or not there.
_ACTIVATIONS: Mapping[str, Any] = {"hard_sigmoid": HardSigmoid, "softmin": SoftMin}


def made(kind: Any, input_shape: Shape, named: Mapping[str, Any], *arguments: Any, **options: Any) -> Any:
    """Returns a layer of a kind, with what its caller was given by name beside the layer's own arguments."""
    for each in named:
        if each not in {"name", "bigdl_type"}:
            raise JobError(one_of("a layer's argument", each, ("name", "bigdl_type")))
    if named.get("bigdl_type", "float") not in {"float", None}:
        raise JobError(f"`bigdl_type` must be 'float'. Received: {named['bigdl_type']!r}.")
    # Some layers make variables, for random numbers, when they are made.
    with tensorflow_2():
        layer = kind(*arguments, name=named.get("name"), **options)
    return noted(layer, input_shape)


def computed(function: str, input_shape: Shape, named: Mapping[str, Any], **options: Any) -> Any:
    """Returns a layer that is a function of its input."""
    return made(Computed, input_shape, named, function, options)


def noted(layer: Any, input_shape: Shape) -> Any:
    """Returns the layer, with its `input_shape` on it."""
    if input_shape is not None:
        layer.zoo_input_shape = shape_of(input_shape)
    return layer


def noted_shape(layer: Any) -> Any:
    """Returns the `input_shape` that a layer was made with: a tuple, or a list of tuples for several inputs."""
    return getattr(layer, "zoo_input_shape", None)


def shape_of(shape: Shape) -> Any:
    """Returns a shape as a tuple, or a list of tuples."""
    if shape is None:
        return ()
    if isinstance(shape, int):
        return (shape,)
    if any(isinstance(each, (list, tuple)) for each in shape):
        return [tuple(each) for each in shape]
    return tuple(None if each is None else int(each) for each in shape)


def ordering(value: str) -> str:
    """Keras's data format for "th" or "tf"."""
    if not isinstance(value, str) or value.lower() not in _ORDERINGS:
        raise JobError(one_of("dim_ordering", value, _ORDERINGS))
    return _ORDERINGS[value.lower()]


def border(value: str, allowed: Sequence[str] = ("valid", "same")) -> str:
    """Returns a valid `border_mode`."""
    if value not in allowed:
        raise JobError(one_of("border_mode", value, allowed))
    return value


def initializer(name: Any, limits: Sequence[float] | None = None) -> Any:
    """Keras's initializer for a name, between two limits (uniform) or of a mean and a deviation (normal)."""
    if not isinstance(name, str):
        return name
    if limits is not None:
        first, second = (float(each) for each in limits)
        if name.lower() == "uniform":
            return keras.initializers.RandomUniform(first, second)
        if name.lower() == "normal":
            return keras.initializers.RandomNormal(first, second)
        raise JobError(f"`limits` is for init='uniform' or 'normal'. Received: {tuple(limits)!r} with {name!r}.")
    return _INITIALIZERS.get(name.lower(), name)


def activation_of(given: Any) -> Any:
    """Keras's activation for a name of BigDL's."""
    if not isinstance(given, str):
        return given
    own = _ACTIVATIONS.get(given.lower())
    return given.lower() if own is None else own()


def pair(value: Any) -> Any:
    """Returns a tuple of what is a list, or the thing itself."""
    return tuple(value) if isinstance(value, list) else value
