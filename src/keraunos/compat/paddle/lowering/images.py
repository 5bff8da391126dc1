"""Layers of images that are neither convolution nor pooling. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keraunos.compat.paddle.lowering.call import Call, Value, lowers
from keraunos.compat.paddle.lowering.planes import given, image

ops = keras.ops

_BATCH_NORM_EPSILON = 1e-5
_CHANNEL_NORM_EPSILON = 1e-6


@lowers("norm", applies_activation=True)
def norm(call: Call) -> Value:
    """Responses over those of neighbouring channels, or over all channels of their place."""
    told = call.settings(0, "norm")
    images = image(call, 0, told["channels"], told["img_size_y"], told["img_size"])
    squares = images * images
    if told["norm_type"] == "cross-channel-norm":
        length = ops.sqrt(ops.sum(squares, axis=-1, keepdims=True) + _CHANNEL_NORM_EPSILON)
        return given(call, images / length * call.weight(0))
    size, channels = told["size"], told["channels"]
    before = size // 2
    wide = ops.pad(squares, [(0, 0), (0, 0), (0, 0), (before, size - 1 - before)])
    around = sum(wide[..., at : at + channels] for at in range(size))
    return given(call, images * ops.power(1.0 + told["scale"] * around, -told["pow"]))


@lowers("batch_norm", "cudnn_batch_norm", "mkldnn_batch_norm", applies_activation=True)
def batch_norm(call: Call) -> Value:
    """Each channel by its mean and variance over the batch, or, outside of training, by what training has seen."""
    told = call.settings(0, "image")
    images = image(call, 0, told["channels"], told["img_size_y"], told["img_size"])
    moving_mean, moving_variance = call.weight(1), call.weight(2)
    if not call.training and call.attributes.get("use_global_stats", True):
        mean, variance = moving_mean, ops.maximum(moving_variance, 0.0)
    else:
        mean, variance = _statistics(images, call.inputs[0].mask)
    if call.training:
        kept = float(call.attributes.get("moving_average_fraction", 0.9))
        _move(call, 1, kept * moving_mean + (1.0 - kept) * mean)
        _move(call, 2, kept * moving_variance + (1.0 - kept) * variance)
    scaled = (images - mean) * (call.weight(0) / ops.sqrt(variance + _BATCH_NORM_EPSILON))
    return given(call, scaled if call.bias is None else scaled + call.bias)


@lowers("maxout", applies_activation=True)
def maxout(call: Call) -> Value:
    """Returns the highest of this many channels that follow each other."""
    told = call.settings(0, "maxout")
    images = image(call, 0, told["channels"], told["img_size_y"], told["img_size_x"])
    height, width, channels = images.shape[1:]
    grouped = ops.reshape(images, (-1, height, width, channels // told["groups"], told["groups"]))
    return given(call, ops.max(grouped, axis=-1))


@lowers("pad", applies_activation=True)
def pad(call: Call) -> Value:
    """Zeros before and behind the channels, the rows and the columns."""
    told = call.settings(0, "pad")
    images = image(call, 0, told["channels"], told["img_size_y"], told["img_size"])
    around = [(0, 0), *(tuple(told[name]) for name in ("pad_h", "pad_w", "pad_c"))]
    return given(call, ops.pad(images, around))


@lowers("bilinear_interp", applies_activation=True)
def bilinear_interp(call: Call) -> Value:
    """Images of another size, whose corners are the corners of the old ones."""
    told = call.settings(0, "bilinear_interp")
    images = image(call, 0, told["num_channels"], told["img_size_y"], told["img_size_x"])
    down = ops.convert_to_tensor(_shares(told["img_size_y"], told["out_size_y"]), dtype=images.dtype)
    across = ops.convert_to_tensor(_shares(told["img_size_x"], told["out_size_x"]), dtype=images.dtype)
    return given(call, ops.einsum("yh,xw,nhwc->nyxc", down, across, images))


@lowers("rotate", applies_activation=True)
def rotate(call: Call) -> Value:
    """Images turned by a quarter, clockwise."""
    height, width = int(call.attributes["height"]), int(call.attributes["width"])
    images = image(call, 0, call.layer.size // (height * width), height, width)
    return given(call, ops.transpose(ops.flip(images, axis=1), (0, 2, 1, 3)))


def _statistics(images: Any, mask: Any) -> tuple[Any, Any]:
    """Mean and variance of each channel; steps that are not there do not count."""
    if mask is None:
        mean = ops.mean(images, axis=(0, 1, 2))
        return mean, ops.mean(ops.square(images - mean), axis=(0, 1, 2))
    present = ops.reshape(ops.cast(mask, images.dtype), (-1, 1, 1, 1))
    count = ops.sum(present) * (images.shape[1] * images.shape[2])
    mean = ops.sum(images * present, axis=(0, 1, 2)) / count
    return mean, ops.sum(ops.square(images - mean) * present, axis=(0, 1, 2)) / count


def _move(call: Call, at: int, value: Any) -> None:
    name = call.layer.inputs[at].parameter
    assert name is not None
    call.moved[name] = ops.reshape(ops.stop_gradient(value), ops.shape(call.parameters[name]))


def _shares(side: int, wanted: int) -> Any:
    """Returns how much each old place has in each new one."""
    step = (side - 1) / (wanted - 1) if wanted > 1 else 0.0
    places = np.arange(wanted) * step
    lower = np.minimum(places.astype(int), side - 1)
    upper = np.minimum(lower + 1, side - 1)
    shares = np.zeros((wanted, side))
    np.add.at(shares, (np.arange(wanted), lower), 1.0 - (places - lower))
    np.add.at(shares, (np.arange(wanted), upper), places - lower)
    return shares
