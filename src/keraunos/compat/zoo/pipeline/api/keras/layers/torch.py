"""`zoo.pipeline.api.keras.layers.torch`: layers that have their names from Torch. Runs on the driver.

Dimensions are counted from 0, the batch being the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers import drawn
from keraunos.compat.zoo.own_layers.channels_first import PaddedConv2D
from keraunos.compat.zoo.own_layers.weighted import ChannelPReLU, ScaleAndShift
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

__all__ = [
    "LRN2D",
    "AddConstant",
    "BinaryThreshold",
    "CAdd",
    "CMul",
    "Exp",
    "GaussianSampler",
    "HardShrink",
    "HardTanh",
    "Identity",
    "Log",
    "Mul",
    "MulConstant",
    "Narrow",
    "Negative",
    "PReLU",
    "Power",
    "RReLU",
    "ResizeBilinear",
    "Scale",
    "Select",
    "SelectTable",
    "ShareConv2D",
    "ShareConvolution2D",
    "SoftShrink",
    "Sqrt",
    "Square",
    "Squeeze",
    "Threshold",
    "WithinChannelLRN2D",
]


def Select(dim: int, index: int, input_shape: Shape = None, **named: Any) -> Any:
    """Returns one place along a dimension, which goes away."""
    _not_the_batch("Select", dim)
    return computed("select", input_shape, named, dim=int(dim), index=int(index))


def Narrow(dim: int, offset: int, length: int = 1, input_shape: Shape = None, **named: Any) -> Any:
    """Returns some places along a dimension; a length of -1 is up to the end."""
    _not_the_batch("Narrow", dim)
    if offset < 0:
        raise JobError(f"`offset` of Narrow must be counted from 0. Received: {offset!r}.")
    return computed("narrow", input_shape, named, dim=int(dim), offset=int(offset), length=int(length))


def Squeeze(dim: int | Sequence[int] | None = None, input_shape: Shape = None, **named: Any) -> Any:
    """Dimensions of size 1 go away: those that are named, or all."""
    dims = None if dim is None else [dim] if isinstance(dim, int) else [int(each) for each in dim]
    for each in dims or ():
        _not_the_batch("Squeeze", each)
    return computed("squeeze", input_shape, named, dims=dims)


def AddConstant(constant: float, input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input and a number."""
    return computed("add_constant", input_shape, named, constant=float(constant))


def MulConstant(constant: float, input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input times a number."""
    return computed("mul_constant", input_shape, named, constant=float(constant))


def LRN2D(
    alpha: float = 1e-4,
    k: float = 1.0,
    beta: float = 0.75,
    n: int = 5,
    dim_ordering: str = "th",
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns each point divided by a power of (k + alpha times the mean square of n neighbouring channels there)."""
    axis = 1 if ordering(dim_ordering) == "channels_first" else 3
    return computed(
        "across_channels",
        input_shape,
        named,
        alpha=float(alpha),
        k=float(k),
        beta=float(beta),
        n=int(n),
        axis=axis,
    )


def WithinChannelLRN2D(
    size: int = 5, alpha: float = 1.0, beta: float = 0.75, input_shape: Shape = None, **named: Any
) -> Any:
    """Returns each point divided by a power of (1 + alpha times the mean square of the points around it)."""
    return computed("within_channels", input_shape, named, size=int(size), alpha=float(alpha), beta=float(beta))


def ShareConvolution2D(
    nb_filter: int,
    nb_row: int,
    nb_col: int,
    init: Any = "glorot_uniform",
    activation: Any = None,
    subsample: Sequence[int] = (1, 1),
    pad_h: int = 0,
    pad_w: int = 0,
    propagate_back: bool = True,
    dim_ordering: str = "th",
    W_regularizer: Any = None,
    b_regularizer: Any = None,
    bias: bool = True,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Filters over images with `pad_h` rows and `pad_w` columns of zeros on both sides."""
    if ordering(dim_ordering) != "channels_first":
        raise JobError(
            f"`dim_ordering` of ShareConvolution2D must be 'th', as in Analytics Zoo. Received: {dim_ordering!r}."
        )
    return made(
        PaddedConv2D,
        input_shape,
        named,
        nb_filter,
        (nb_row, nb_col),
        strides=tuple(subsample),
        pads=(pad_h, pad_w),
        propagate_back=bool(propagate_back),
        data_format="channels_first",
        activation=activation_of(activation),
        use_bias=bias,
        kernel_initializer=initializer(init),
        kernel_regularizer=W_regularizer,
        bias_regularizer=b_regularizer,
    )


def CAdd(size: Sequence[int], b_regularizer: Any = None, input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input and a bias, which is repeated along its dimensions of size 1."""
    return made(
        ScaleAndShift,
        input_shape,
        named,
        size,
        scale=False,
        shift_initializer=_within(size),
        shift_regularizer=b_regularizer,
    )


def CMul(size: Sequence[int], W_regularizer: Any = None, input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input times a weight, which is repeated along its dimensions of size 1."""
    return made(
        ScaleAndShift,
        input_shape,
        named,
        size,
        shift=False,
        scale_initializer=_within(size),
        scale_regularizer=W_regularizer,
    )


def Scale(size: Sequence[int], input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input times a weight, and a bias."""
    return made(
        ScaleAndShift, input_shape, named, size, scale_initializer=_within(size), shift_initializer=_within(size)
    )


def Mul(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input times one weight."""
    return made(ScaleAndShift, input_shape, named, (1,), shift=False, scale_initializer=_within((1,)))


def Exp(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the exponential."""
    return computed("exp", input_shape, named)


def Identity(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input."""
    return computed("identity", input_shape, named)


def Log(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the natural logarithm."""
    return computed("log", input_shape, named)


def Power(power: float, scale: float = 1, shift: float = 0, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a power of (shift and scale times the input)."""
    return computed("power", input_shape, named, power=float(power), scale=float(scale), shift=float(shift))


def Sqrt(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the square root."""
    return computed("sqrt", input_shape, named)


def Square(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the square."""
    return computed("square", input_shape, named)


def HardShrink(value: float = 0.5, input_shape: Shape = None, **named: Any) -> Any:
    """Returns values farther than `value` from zero; zero for others."""
    return computed("hard_shrink", input_shape, named, value=float(value))


def HardTanh(min_value: float = -1, max_value: float = 1, input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input, cut to a range."""
    return computed("hard_tanh", input_shape, named, min_value=float(min_value), max_value=float(max_value))


def Negative(input_shape: Shape = None, **named: Any) -> Any:
    """Minus the input."""
    return computed("negative", input_shape, named)


def PReLU(n_output_plane: int = 0, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a layer that multiplies negative values by a trained slope: one for all, or one per channel."""
    return made(ChannelPReLU, input_shape, named, n_output_plane)


def RReLU(lower: float = 1.0 / 8, upper: float = 1.0 / 3, input_shape: Shape = None, **named: Any) -> Any:
    """Multiplies negative values by a slope, drawn per element in training, otherwise the mean."""
    return made(drawn.RReLU, input_shape, named, lower, upper)


def SoftShrink(value: float = 0.5, input_shape: Shape = None, **named: Any) -> Any:
    """Returns the input, by `value` nearer to zero; zero where it was nearer than that."""
    return computed("soft_shrink", input_shape, named, value=float(value))


def BinaryThreshold(value: float = 1e-6, input_shape: Shape = None, **named: Any) -> Any:
    """1 above a value, 0 otherwise."""
    return computed("binary_threshold", input_shape, named, value=float(value))


def Threshold(th: float = 1e-6, v: float = 0.0, input_shape: Shape = None, **named: Any) -> Any:
    """Returns values above `th`; `v` for others."""
    return computed("threshold", input_shape, named, th=float(th), v=float(v))


def GaussianSampler(input_shape: Shape = None, **named: Any) -> Any:
    """Draws from normal distributions, of which the two inputs are the means and the logarithms of the variances."""
    return made(drawn.GaussianSampler, input_shape, named)


def ResizeBilinear(
    output_height: int,
    output_width: int,
    align_corner: bool = False,
    dim_ordering: str = "th",
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns an image in another size."""
    return computed(
        "resized",
        input_shape,
        named,
        height=int(output_height),
        width=int(output_width),
        align_corners=bool(align_corner),
        first=ordering(dim_ordering) == "channels_first",
    )


def SelectTable(index: int, input_shape: Shape = None, **named: Any) -> Any:
    """Returns one of several inputs, counted from 0."""
    return computed("select_table", input_shape, named, index=int(index))


ShareConv2D = ShareConvolution2D


def _within(size: Sequence[int]) -> Any:
    """BigDL's initial values: uniform within the inverse root of how many they are."""
    bound = 1.0 / math.sqrt(math.prod(int(each) for each in size))
    return keras.initializers.RandomUniform(-bound, bound)


def _not_the_batch(layer: str, dim: int) -> None:
    if dim == 0:
        raise JobError(f"`dim` of {layer} must not be the batch, which is dimension 0. Received: 0.")
