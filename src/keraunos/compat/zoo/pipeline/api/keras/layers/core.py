"""`zoo.pipeline.api.keras.layers.core`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.util.common import INTMIN
from keraunos.compat.zoo.own_layers.given import GivenValues
from keraunos.compat.zoo.own_layers.tables import SparseDense as _SparseDense
from keraunos.compat.zoo.pipeline.api.keras.layer_making import (
    Shape,
    activation_of,
    computed,
    initializer,
    made,
    ordering,
)
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

from keraunos.compat.old_keras import own_layers  # noqa: E402 - the same

__all__ = [
    "Activation",
    "Dense",
    "Dropout",
    "ExpandDim",
    "Flatten",
    "GetShape",
    "Highway",
    "Masking",
    "Max",
    "MaxoutDense",
    "Permute",
    "RepeatVector",
    "Reshape",
    "SparseDense",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
]


def Masking(mask_value: float = 0.0, input_shape: Shape = None, **named: Any) -> Any:
    """Steps that later layers leave out where all elements have a value."""
    return made(keras.layers.Masking, input_shape, named, float(mask_value))


def Dropout(p: float, input_shape: Shape = None, **named: Any) -> Any:
    """Drop a share `p` of the elements while training."""
    return made(keras.layers.Dropout, input_shape, named, float(p))


def SpatialDropout1D(p: float = 0.5, input_shape: Shape = None, **named: Any) -> Any:
    """Drop a share `p` of the channels of steps while training."""
    return made(keras.layers.SpatialDropout1D, input_shape, named, float(p))


def SpatialDropout2D(p: float = 0.5, dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Drop a share `p` of the channels of images while training."""
    kind = keras.layers.SpatialDropout2D
    return made(kind, input_shape, named, float(p), data_format=ordering(dim_ordering))


def SpatialDropout3D(p: float = 0.5, dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Drop a share `p` of the channels of volumes while training."""
    kind = keras.layers.SpatialDropout3D
    return made(kind, input_shape, named, float(p), data_format=ordering(dim_ordering))


def Activation(activation: str, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a function of each element, or softmax."""
    return made(keras.layers.Activation, input_shape, named, activation_of(activation))


def Reshape(target_shape: Sequence[int], input_shape: Shape = None, **named: Any) -> Any:
    """Returns a row in another shape."""
    return made(keras.layers.Reshape, input_shape, named, tuple(target_shape))


def Permute(dims: Sequence[int], input_shape: Shape = None, **named: Any) -> Any:
    """Returns a row with its dimensions, counted from 1, in another order."""
    return made(keras.layers.Permute, input_shape, named, tuple(dims))


def Flatten(input_shape: Shape = None, **named: Any) -> Any:
    """Returns a row as one vector."""
    return made(keras.layers.Flatten, input_shape, named)


def RepeatVector(n: int, input_dim: int | None = None, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a vector `n` times."""
    return made(keras.layers.RepeatVector, (input_dim,) if input_dim else input_shape, named, n)


def Dense(
    output_dim: int,
    init: Any = "glorot_uniform",
    limits: Any = None,
    activation: Any = None,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_dim: int | None = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns a matrix and a bias. `limits` belong to init="uniform" or "normal"."""
    limits, activation = limits_and_activation("Dense", limits, activation)
    return made(
        keras.layers.Dense,
        (input_dim,) if input_dim else input_shape,
        named,
        output_dim,
        activation=activation_of(activation),
        use_bias=bias,
        kernel_initializer=initializer(init, limits),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )


def GetShape(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the shape of a batch, as numbers."""
    return computed("shape", input_shape, named)


def SparseDense(
    output_dim: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    backward_start: int = -1,
    backward_length: int = -1,
    init_weight: Any = None,
    init_bias: Any = None,
    init_grad_weight: Any = None,
    init_grad_bias: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """A matrix and a bias for rows that are mostly zeros, given as dense arrays; layers before it learn nothing.

    Of `backward_length` inputs from `backward_start`, counted from 1, they do learn.
    """
    if init_grad_weight is not None or init_grad_bias is not None:
        raise JobError(
            "`init_grad_weight` and `init_grad_bias` of SparseDense must be left out: gradients are computed in each "
            "step, without initial values. Received: an array."
        )
    return made(
        _SparseDense,
        input_shape,
        named,
        output_dim,
        activation=activation_of(activation),
        use_bias=bias,
        backward_start=backward_start,
        backward_length=backward_length,
        # BigDL's matrix has a row for each output.
        kernel_initializer=initializer(init) if init_weight is None else given_values(init_weight, transposed=True),
        bias_initializer="zeros" if init_bias is None else given_values(init_bias),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )


def MaxoutDense(
    output_dim: int,
    nb_feature: int = 4,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_dim: int | None = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns the largest of several Dense layers, output by output."""
    return made(
        own_layers.MaxoutDense,
        (input_dim,) if input_dim else input_shape,
        named,
        output_dim,
        nb_feature,
        use_bias=bias,
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )


def Highway(
    activation: Any = None,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_dim: int | None = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns a Dense layer as wide as its input and the input itself, in shares that the layer learns."""
    return made(
        own_layers.Highway,
        (input_dim,) if input_dim else input_shape,
        named,
        activation=activation_of(activation),
        use_bias=bias,
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )


def Max(
    dim: int, num_input_dims: int = INTMIN, return_value: bool = True, input_shape: Shape = None, **named: Any
) -> Any:
    """Returns the largest along a dimension, which goes away, or its place, counted from 1.

    The batch is dimension 0.
    """
    if num_input_dims != INTMIN:
        raise JobError(
            f"`num_input_dims` of Max must be left out: an input always has a batch. Received: {num_input_dims!r}. "
            "Count `dim` from the batch, which is 0."
        )
    return computed("max", input_shape, named, dim=int(dim), return_value=bool(return_value))


def ExpandDim(dim: int, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a dimension of size 1 more; the batch is dimension 0."""
    return computed("expand", input_shape, named, dim=int(dim))


def limits_and_activation(layer: str, limits: Any, activation: Any) -> tuple[Any, Any]:
    """Returns both, where the program may be of the days when `activation` stood instead of `limits`."""
    if limits is None or not (isinstance(limits, str) or callable(limits)):
        return limits, activation
    if activation is not None:
        raise JobError(
            f"`limits` of {layer}, its argument before `activation`, must be two numbers. Received: {limits!r} and "
            f"{activation!r}. Give `activation` and what follows it by name."
        )
    return None, limits


def given_values(array: Any, *, transposed: bool = False) -> Any:
    """Returns an initializer with the values of an array."""
    values = np.asarray(array.to_ndarray() if hasattr(array, "to_ndarray") else array, dtype=np.float32)
    return GivenValues(values.T if transposed else values)
