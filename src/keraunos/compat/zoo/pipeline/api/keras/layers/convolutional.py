"""`zoo.pipeline.api.keras.layers.convolutional`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PaddedConv2D, TransposedConv2D, TransposedDeconvolution2D
from keraunos.compat.zoo.pipeline.api.keras.layer_making import (
    Shape,
    activation_of,
    border,
    initializer,
    made,
    ordering,
    pair,
)
from keraunos.compat.zoo.pipeline.api.keras.layers.core import limits_and_activation
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "AtrousConv1D",
    "AtrousConv2D",
    "AtrousConvolution1D",
    "AtrousConvolution2D",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "Convolution1D",
    "Convolution2D",
    "Convolution3D",
    "Cropping1D",
    "Cropping2D",
    "Cropping3D",
    "Deconv2D",
    "Deconvolution2D",
    "SeparableConv2D",
    "SeparableConvolution2D",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "ZeroPadding3D",
]

Sizes = Sequence[int]


def Convolution1D(
    nb_filter: int,
    filter_length: int,
    init: Any = "glorot_uniform",
    limits: Any = None,
    activation: Any = None,
    border_mode: str = "valid",
    subsample_length: int = 1,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over steps, whose channels come last."""
    limits, activation = limits_and_activation("Convolution1D", limits, activation)
    options = _dense(init, activation, W_regularizer, b_regularizer, bias, limits)
    return made(
        keras.layers.Conv1D,
        input_shape,
        named,
        nb_filter,
        filter_length,
        strides=subsample_length,
        padding=border(border_mode),
        **options,
    )


def AtrousConvolution1D(
    nb_filter: int,
    filter_length: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    border_mode: str = "valid",
    subsample_length: int = 1,
    atrous_rate: int = 1,
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters with gaps over steps."""
    return made(
        keras.layers.Conv1D,
        input_shape,
        named,
        nb_filter,
        filter_length,
        strides=subsample_length,
        padding=border(border_mode, ("valid",)),
        dilation_rate=atrous_rate,
        **_dense(init, activation, W_regularizer, b_regularizer, bias),
    )


def Convolution2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    border_mode: str = "valid",
    subsample: Sizes = (1, 1),
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    pads: Sizes | None = None,
    **named: Any,
) -> Any:
    """Filters over images, with `pads` rows and columns of zeros on both sides in place of a `border_mode`."""
    options = _dense(init, activation, W_regularizer, b_regularizer, bias)
    options |= {"strides": tuple(subsample), "data_format": ordering(dim_ordering)}
    border(border_mode)
    if pads is not None:
        return made(PaddedConv2D, input_shape, named, nb_filter, (nb_row, nb_col), pads=tuple(pads), **options)
    kind = TransposedConv2D if ordering(dim_ordering) == "channels_first" else keras.layers.Conv2D
    return made(kind, input_shape, named, nb_filter, (nb_row, nb_col), padding=border_mode, **options)


def AtrousConvolution2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    border_mode: str = "valid",
    subsample: Sizes = (1, 1),
    atrous_rate: Sizes = (1, 1),
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters with gaps over images."""
    return made(
        TransposedConv2D,
        input_shape,
        named,
        nb_filter,
        (nb_row, nb_col),
        padding=border(border_mode, ("valid",)),
        strides=tuple(subsample),
        dilation_rate=tuple(atrous_rate),
        data_format=ordering(dim_ordering),
        **_dense(init, activation, W_regularizer, b_regularizer, bias),
    )


def Deconvolution2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    output_shape: Any,
    init: Any = "glorot_uniform",
    activation: Any = None,
    border_mode: str = "valid",
    subsample: Sizes = (1, 1),
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over images the other way round, which makes them larger; `output_shape` is checked."""
    return made(
        TransposedDeconvolution2D,
        input_shape,
        named,
        nb_filter,
        (nb_row, nb_col),
        padding=border(border_mode, ("valid",)),
        strides=tuple(subsample),
        data_format=ordering(dim_ordering),
        expected=None if output_shape is None else tuple(output_shape),
        **_dense(init, activation, W_regularizer, b_regularizer, bias),
    )


def SeparableConvolution2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    border_mode: str = "valid",
    subsample: Sizes = (1, 1),
    depth_multiplier: int = 1,
    dim_ordering: str = "th",
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over each channel of images, then a matrix over channels."""
    return made(
        keras.layers.SeparableConv2D,
        input_shape,
        named,
        nb_filter,
        (nb_row, nb_col),
        padding=border(border_mode),
        strides=tuple(subsample),
        depth_multiplier=depth_multiplier,
        data_format=ordering(dim_ordering),
        activation=activation_of(activation),
        use_bias=bias,
        depthwise_initializer=initializer(init),
        pointwise_initializer=initializer(init),
        depthwise_regularizer=depthwise_regularizer,
        pointwise_regularizer=pointwise_regularizer,
        bias_regularizer=b_regularizer,
    )


def Convolution3D(
    nb_filter: int,
    kernel_dim1: int,
    kernel_dim2: int,
    kernel_dim3: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    border_mode: str = "valid",
    subsample: Sizes = (1, 1, 1),
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over volumes."""
    return made(
        keras.layers.Conv3D,
        input_shape,
        named,
        nb_filter,
        (kernel_dim1, kernel_dim2, kernel_dim3),
        padding=border(border_mode),
        strides=tuple(subsample),
        data_format=ordering(dim_ordering),
        **_dense(init, activation, W_regularizer, b_regularizer, bias),
    )


def UpSampling1D(length: int = 2, input_shape: Shape = None, **named: Any) -> Any:
    """Returns every step several times."""
    return made(keras.layers.UpSampling1D, input_shape, named, length)


def UpSampling2D(size: Sizes = (2, 2), dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Returns every point several times."""
    return made(keras.layers.UpSampling2D, input_shape, named, tuple(size), data_format=ordering(dim_ordering))


def UpSampling3D(size: Sizes = (2, 2, 2), dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Returns every point of volumes several times."""
    return made(keras.layers.UpSampling3D, input_shape, named, tuple(size), data_format=ordering(dim_ordering))


def ZeroPadding1D(padding: Any = 1, input_shape: Shape = None, **named: Any) -> Any:
    """Zeros before and after the steps."""
    return made(keras.layers.ZeroPadding1D, input_shape, named, pair(padding))


def ZeroPadding2D(padding: Any = (1, 1), dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Zeros around an image: rows and columns, or top, bottom, left and right."""
    around = tuple(padding)
    if len(around) == 4:
        around = (around[:2], around[2:])
    return made(keras.layers.ZeroPadding2D, input_shape, named, around, data_format=ordering(dim_ordering))


def ZeroPadding3D(padding: Any = (1, 1, 1), dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Zeros around a volume."""
    return made(keras.layers.ZeroPadding3D, input_shape, named, tuple(padding), data_format=ordering(dim_ordering))


def Cropping1D(cropping: Sizes = (1, 1), input_shape: Shape = None, **named: Any) -> Any:
    """Returns the steps without some of the first and last."""
    return made(keras.layers.Cropping1D, input_shape, named, pair(cropping))


def Cropping2D(
    cropping: Sequence[Sizes] = ((0, 0), (0, 0)), dim_ordering: str = "th", input_shape: Shape = None, **named: Any
) -> Any:
    """Returns an image without some rows and columns at its edges."""
    edges = _edges("Cropping2D", cropping, 2)
    return made(keras.layers.Cropping2D, input_shape, named, edges, data_format=ordering(dim_ordering))


def Cropping3D(
    cropping: Sequence[Sizes] = ((1, 1), (1, 1), (1, 1)),
    dim_ordering: str = "th",
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns a volume without some points at its faces."""
    edges = _edges("Cropping3D", cropping, 3)
    return made(keras.layers.Cropping3D, input_shape, named, edges, data_format=ordering(dim_ordering))


Conv1D = Convolution1D
Conv2D = Convolution2D
Conv3D = Convolution3D
Deconv2D = Deconvolution2D
AtrousConv1D = AtrousConvolution1D
AtrousConv2D = AtrousConvolution2D
SeparableConv2D = SeparableConvolution2D


def _dense(
    init: Any, activation: Any, W_regularizer: Any, b_regularizer: Any, bias: bool, limits: Any = None
) -> dict[str, Any]:
    return {
        "activation": activation_of(activation),
        "use_bias": bias,
        "kernel_initializer": initializer(init, limits),
        "kernel_regularizer": W_regularizer,
        "bias_regularizer": b_regularizer,
    }


def _edges(layer: str, cropping: Sequence[Sizes], count: int) -> tuple[tuple[int, ...], ...]:
    if len(cropping) != count or any(len(tuple(each)) != 2 for each in cropping):
        raise JobError(f"`cropping` of {layer} must be {count} pairs of numbers. Received: {cropping!r}.")
    return tuple(tuple(each) for each in cropping)
