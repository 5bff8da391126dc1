"""Convolutions and transposed convolutions, as layers and as parts of others. Runs on the driver and on workers.

Paddle's own code keeps a group's filters as [channels, height, width, filters]; what it hands to cuDNN is [filters,
channels, height, width]. A transposed convolution is a convolution backwards: its filters are those of the convolution
that makes its input of its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import Call, Value, lowers
from keraunos.compat.paddle.lowering.planes import given, image, padded, windows

ops = keras.ops

Settings = Mapping[str, Any]


@lowers("exconv", "conv", "cudnn_conv", "mkldnn_conv", applies_activation=True)
def conv(call: Call) -> Value:
    """Returns the sum over the inputs of their convolutions, and the bias."""
    filters_last = call.layer.type in ("exconv", "conv")
    total = None
    for at in range(len(call.inputs)):
        told = call.settings(at, "conv")
        images = image(call, at, told["channels"], told["img_size_y"], told["img_size"])
        part = convolved(images, kernel(call.weight(at), told, filters_last=filters_last), told)
        total = part if total is None else total + part
    return given(call, _with_filter_bias(call, total))


@lowers("exconvt", "convt", "cudnn_convt", applies_activation=True)
def convt(call: Call) -> Value:
    """Returns the sum over the inputs of their transposed convolutions, and the bias."""
    filters_last = call.layer.type in ("exconvt", "convt")
    total = None
    for at in range(len(call.inputs)):
        told = call.settings(at, "conv")
        images = image(call, at, told["channels"], told["output_y"], told["output_x"])
        part = spread(images, kernel(call.weight(at), turned(told), filters_last=filters_last), told)
        total = part if total is None else total + part
    return given(call, _with_filter_bias(call, total))


def kernel(weight: Any, told: Settings, *, filters_last: bool) -> Any:
    """Filters as in Keras, (height, width, channels of a group, filters), from Paddle's flat parameter."""
    groups, height, width = told["groups"], told["filter_size_y"], told["filter_size"]
    channels = told["channels"] // groups
    if filters_last:
        grouped = ops.reshape(weight, (groups, channels, height, width, -1))
        return ops.reshape(ops.transpose(grouped, (2, 3, 1, 0, 4)), (height, width, channels, -1))
    return ops.transpose(ops.reshape(weight, (-1, channels, height, width)), (2, 3, 1, 0))


def turned(told: Settings) -> dict[str, Any]:
    """Returns the settings of the convolution that a transposed one is the way back of."""
    return {**told, "channels": told["filter_channels"] * told["groups"]}


def convolved(images: Any, filters: Any, told: Settings) -> Any:
    """Images with channels last, convolved; by the ceiling rule the last windows stand over the edge, on zeros."""
    around = [_around(told, axis) for axis in ("_y", "")]
    return ops.conv(
        padded(images, around),
        filters,
        strides=(told["stride_y"], told["stride"]),
        padding="valid",
        data_format="channels_last",
    )


def spread(images: Any, filters: Any, told: Settings) -> Any:
    """Images with channels last under a transposed convolution; `filters` are those of the way back."""
    groups = told["groups"]
    strides = (told["stride_y"], told["stride"])
    # One group's filters have its own part of the images' channels as their last axis.
    parts = [
        ops.conv_transpose(own, own_filters, strides=strides, padding="valid", data_format="channels_last")
        for own, own_filters in zip(ops.split(images, groups, axis=-1), ops.split(filters, groups, axis=-1))
    ]
    full = parts[0] if groups == 1 else ops.concatenate(parts, axis=-1)
    sides = (told["img_size_y"], told["img_size"])
    paddings = (told["padding_y"], told["padding"])
    around = [(-pad, side + pad - full.shape[axis]) for axis, (side, pad) in enumerate(zip(sides, paddings), start=1)]
    return padded(full, around)


def convolved_each(images: Any, filters: Any, told: Settings) -> Any:
    """Images convolved with filters of their own: (rows, filters, channels, height, width)."""
    around = [_around(told, axis) for axis in ("_y", "")]
    sides = (told["filter_size_y"], told["filter_size"])
    strides, counts = (told["stride_y"], told["stride"]), (told["output_y"], told["output_x"])
    under = windows(padded(images, around), sides, strides, counts)
    flat_filters = ops.reshape(filters, (-1, *filters.shape[1:3], sides[0] * sides[1]))
    return ops.einsum("npyxc,nfcp->nyxf", under, flat_filters)


def spread_each(images: Any, filters: Any, told: Settings) -> Any:
    """Images under transposed convolutions of their own: (rows, channels, filters, height, width)."""
    sides, strides = (told["filter_size_y"], told["filter_size"]), (told["stride_y"], told["stride"])
    paddings, outs = (told["padding_y"], told["padding"]), (told["img_size_y"], told["img_size"])
    apart = _apart(images, strides)
    before = [side - 1 - pad for side, pad in zip(sides, paddings)]
    # Zeros between the pixels and around them, then a convolution with the filters upside down.
    behind = [out + side - 1 - first - apart.shape[axis]
              for axis, (out, side, first) in enumerate(zip(outs, sides, before), start=1)]  # fmt: skip
    under = windows(padded(apart, list(zip(before, behind))), sides, (1, 1), outs)
    upside = ops.flip(ops.reshape(filters, (-1, *filters.shape[1:3], sides[0] * sides[1])), axis=-1)
    return ops.einsum("npyxc,ncfp->nyxf", under, upside)


def _apart(images: Any, strides: tuple[int, int]) -> Any:
    """Images with zeros between their pixels."""
    height, width, channels = images.shape[1:]
    wide = ops.reshape(images, (-1, height, 1, width, 1, channels))
    wide = ops.pad(wide, [(0, 0), (0, 0), (0, strides[0] - 1), (0, 0), (0, strides[1] - 1), (0, 0)])
    full = ops.reshape(wide, (-1, height * strides[0], width * strides[1], channels))
    return full[:, : (height - 1) * strides[0] + 1, : (width - 1) * strides[1] + 1]


def _around(told: Settings, axis: str) -> tuple[int, int]:
    """Returns how many zeros a side needs before and behind for its windows."""
    count = told["output_y"] if axis else told["output_x"]
    reach = (count - 1) * told[f"stride{axis}"] + told[f"filter_size{axis}"]
    before = told[f"padding{axis}"]
    return before, max(0, reach - told[f"img_size{axis}"] - before)


def _with_filter_bias(call: Call, images: Any) -> Any:
    """Returns the bias of each filter, or of each place of each filter."""
    if call.bias is None:
        return images
    if call.attributes.get("shared_biases", False):
        return images + call.bias
    height, width, filters = images.shape[1:]
    return images + ops.transpose(ops.reshape(call.bias, (filters, height, width)), (1, 2, 0))
