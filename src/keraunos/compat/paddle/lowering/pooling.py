"""Windows over images: pooling, pyramids of it, patches as steps. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keraunos.compat.paddle.lowering.activations import activate
from keraunos.compat.paddle.lowering.arrivals import no_sequence
from keraunos.compat.paddle.lowering.call import Call, Value, lowers
from keraunos.compat.paddle.lowering.planes import flat, given, image, like, padded, windows

ops = keras.ops

Settings = Mapping[str, Any]


@lowers("pool", "mkldnn_pool", applies_activation=True)
def pool(call: Call) -> Value:
    """Returns the highest or the mean of each window."""
    told = call.settings(0, "pool")
    return given(call, pooled(image(call, 0, told["channels"], told["img_size_y"], told["img_size"]), told))


@lowers("spp", applies_activation=True)
def spp(call: Call) -> Value:
    """Poolings to 1, 2, 4, … windows a side, one after the other."""
    told = call.settings(0, "spp")
    images = image(call, 0, told["channels"], told["img_size_y"], told["img_size"])
    levels = [flat(pooled(images, _level(told, 2**level))) for level in range(told["pyramid_height"])]
    value = call.inputs[0]
    tensor = like(value, ops.concatenate(levels, axis=-1))
    return Value(activate(call.layer.active_type, tensor, value.mask), value.mask)


@lowers("blockexpand")
def blockexpand(call: Call) -> Value:
    """Returns a sequence of the blocks of an image, row by row; a step is a block, channel by channel."""
    no_sequence(call, "it makes sequences of images")
    told = call.settings(0, "block_expand")
    sides, strides = (told["block_y"], told["block_x"]), (told["stride_y"], told["stride_x"])
    counts = (told["output_y"], told["output_x"])
    images = image(call, 0, told["channels"], told["img_size_y"], told["img_size_x"])
    around = [
        (before, max(0, (count - 1) * stride + side - size - before))
        for before, count, stride, side, size in zip(
            (told["padding_y"], told["padding_x"]), counts, strides, sides, images.shape[1:3]
        )
    ]
    under = ops.transpose(windows(padded(images, around), sides, strides, counts), (0, 2, 3, 4, 1))
    steps = ops.reshape(under, (-1, counts[0] * counts[1], told["channels"] * sides[0] * sides[1]))
    return Value(steps, ops.ones_like(steps[..., 0], dtype="bool"))


def pooled(images: Any, told: Settings) -> Any:
    """Images with channels last, pooled; windows that stand over the edge are cut there."""
    start = told.get("start") or 0
    images = images[:, start:, start:]
    sides, strides = (told["size_y"], told["size_x"]), (told["stride_y"], told["stride"])
    counts, paddings = (told["output_y"], told["output_x"]), (told["padding_y"], told["padding"])
    around = [
        (before, (count - 1) * stride + side - size - before)
        for before, count, stride, side, size in zip(paddings, counts, strides, sides, images.shape[1:3])
    ]
    how = {"strides": strides, "padding": "valid", "data_format": "channels_last"}
    if "max" in told["pool_type"]:
        highest = _highest(padded(images, around, value=float("-inf")), sides, strides)
        meets = _meets(images.shape[1:3], sides, strides, counts, paddings)
        return highest if meets.all() else ops.where(ops.convert_to_tensor(meets), highest, ops.zeros_like(highest))
    means = ops.average_pool(padded(images, around), sides, **how)
    shares = _shares(images.shape[1:3], sides, strides, counts, paddings)
    return means if (shares == 1).all() else means * ops.convert_to_tensor(shares, dtype=means.dtype)


def _highest(images: Any, sides: tuple[int, int], strides: tuple[int, int]) -> Any:
    """Returns the highest of every window.

    If windows overlap by whole strides, the highest of each stride's pixels is found once and not in every window
    that has them: with windows of 32 and strides of 8 that is a sixteenth of the work, forwards and backwards.
    """
    how = {"padding": "valid", "data_format": "channels_last"}
    if strides != sides and all(side % stride == 0 for side, stride in zip(sides, strides)) and max(strides) > 1:
        images = ops.max_pool(images, strides, strides=strides, **how)
        sides, strides = (sides[0] // strides[0], sides[1] // strides[1]), (1, 1)
    return ops.max_pool(images, sides, strides=strides, **how)


def _shares(
    image_sides: tuple[int, int],
    sides: tuple[int, int],
    strides: tuple[int, int],
    counts: tuple[int, int],
    paddings: tuple[int, int],
) -> Any:
    """The factor on a mean over whole windows: padding belongs to a window, pixels beyond it do not."""
    covered = []
    for image_side, side, stride, count, padding in zip(image_sides, sides, strides, counts, paddings):
        starts = np.arange(count) * stride - padding
        covered.append(np.minimum(starts + side, image_side + padding) - starts)
    return (sides[0] * sides[1]) / (covered[0][:, None] * covered[1][None, :])[None, :, :, None]


def _meets(
    image_sides: tuple[int, int],
    sides: tuple[int, int],
    strides: tuple[int, int],
    counts: tuple[int, int],
    paddings: tuple[int, int],
) -> Any:
    """Returns which windows see the image; those of a pyramid may lie in the padding, and give 0."""
    seen = []
    for image_side, side, stride, count, padding in zip(image_sides, sides, strides, counts, paddings):
        starts = np.arange(count) * stride - padding
        seen.append((starts + side > 0) & (starts < image_side))
    return (seen[0][:, None] & seen[1][None, :])[None, :, :, None]


def _level(told: Settings, bins: int) -> Settings:
    """Returns the pooling of one level of a pyramid."""
    level: dict[str, Any] = {"pool_type": told["pool_type"]}
    for axis, size, output in (("", "size_x", "output_x"), ("_y", "size_y", "output_y")):
        side = told[f"img_size{axis}"]
        window = -(-side // bins)
        padding = (window * bins - side + 1) // 2
        level |= {size: window, f"stride{axis}": window, f"padding{axis}": padding}
        level[output] = (2 * padding + side - window) // window + 1
    return level
