"""Images in Paddle's flat order as tensors, and back. Runs on the driver and on workers.

Layers compute with channels last, which is what processors are fast at; what flows between layers is flat, channel by
channel. If two such layers follow each other the changes of order cancel when the model is compiled, because the
activation between them is applied before the order changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras

from keraunos.compat.paddle.lowering.activations import activate, takes_numbers_alone
from keraunos.compat.paddle.lowering.arrivals import shared_mask, vectors
from keraunos.compat.paddle.lowering.call import Call, Value

ops = keras.ops


def image(call: Call, at: int, channels: int, height: int, width: int) -> Any:
    """Returns an input as images: (rows, height, width, channels); the steps of sequences are rows."""
    return image_of(vectors(call, at), channels, height, width)


def image_of(tensor: Any, channels: int, height: int, width: int) -> Any:
    """Flat images, or sequences of them, with channels last."""
    return ops.transpose(ops.reshape(tensor, (-1, channels, height, width)), (0, 2, 3, 1))


def flat(images: Any) -> Any:
    """Images with channels last, as Paddle keeps them."""
    return ops.reshape(ops.transpose(images, (0, 3, 1, 2)), (-1, math.prod(images.shape[1:])))


def given(call: Call, images: Any) -> Value:
    """Returns a layer's output from its images with channels last; the activation is applied here."""
    mask, name = shared_mask(call), call.layer.active_type
    alone = takes_numbers_alone(name)
    tensor = like(call.inputs[0], flat(activate(name, images) if alone else images))
    return Value(tensor if alone else activate(name, tensor, mask), mask)


def like(value: Value, rows: Any) -> Any:
    """Returns rows as sequences, where the value has sequences of which the rows are the steps."""
    return ops.reshape(rows, (-1, ops.shape(value.tensor)[1], rows.shape[-1])) if value.is_sequence else rows


def windows(images: Any, sides: tuple[int, int], strides: tuple[int, int], counts: tuple[int, int]) -> Any:
    """Returns the pixels at each position of a window: (rows, places, down, across, channels)."""
    places = [
        images[:, _run(row, strides[0], counts[0]), _run(column, strides[1], counts[1])]
        for row in range(sides[0])
        for column in range(sides[1])
    ]
    return ops.stack(places, axis=1)


def padded(images: Any, around: Sequence[tuple[int, int]], value: float = 0.0) -> Any:
    """Images with this many rows and columns before and behind; negative numbers cut some off."""
    cuts = [slice(max(0, -before), side + min(0, behind)) for side, (before, behind) in zip(images.shape[1:3], around)]
    added = [(max(0, before), max(0, behind)) for before, behind in around]
    images = images[:, cuts[0], cuts[1]]
    return ops.pad(images, [(0, 0), *added, (0, 0)], constant_values=value) if any(map(any, added)) else images


def _run(start: int, stride: int, count: int) -> slice:
    return slice(start, start + stride * (count - 1) + 1, stride)
