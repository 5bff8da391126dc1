"""Layers without weights: functions of their input, by name. Runs on the driver and on workers.

Dimensions are counted from 0, the batch being the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
import tensorflow as tf  # noqa: E402 - the same
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class Computed(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """A function of its input.

    Args:
        function: its name in `FUNCTIONS`.
        options: its arguments besides the input.
        named: name, dtype and the like.
    """

    def __init__(self, function: str, options: Mapping[str, Any] | None = None, **named: Any) -> None:
        # Numbers of words and classes stay whole where they are only moved.
        super().__init__(**{"autocast": function not in MOVED, **named})
        self.function = function
        self.options = dict(options or {})

    def build(self, input_shape: Any) -> None:
        """There are no weights to make."""

    def call(self, inputs: Any) -> Any:
        """Returns the function's value."""
        return FUNCTIONS[self.function](inputs, **self.options)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), "function": self.function, "options": self.options}


def _hard_tanh(x: Any, min_value: float, max_value: float) -> Any:
    return ops.clip(x, min_value, max_value)


def _threshold(x: Any, th: float, v: float) -> Any:
    return ops.where(x > th, x, ops.cast(v, x.dtype))


def _binary_threshold(x: Any, value: float) -> Any:
    return ops.cast(x > value, x.dtype)


def _soft_shrink(x: Any, value: float) -> Any:
    return ops.sign(x) * ops.maximum(ops.abs(x) - value, 0)


def _power(x: Any, power: float, scale: float, shift: float) -> Any:
    return ops.power(shift + scale * x, power)


def _select(x: Any, dim: int, index: int) -> Any:
    where: list[Any] = [slice(None)] * len(x.shape)
    where[dim] = index
    return x[tuple(where)]


def _narrow(x: Any, dim: int, offset: int, length: int) -> Any:
    size = x.shape[dim]
    end = offset + length if length >= 0 else size + length + 1
    if end <= offset or (size is not None and end > size):
        raise ModelError(
            f"A Narrow must take places that are there. Expected: some of the {size} of a dimension. Received: the "
            f"places from {offset} to {end - 1}, counted from 0."
        )
    where: list[Any] = [slice(None)] * len(x.shape)
    where[dim] = slice(offset, end)
    return x[tuple(where)]


def _squeeze(x: Any, dims: Sequence[int] | None) -> Any:
    single = [i for i in range(1, len(x.shape)) if x.shape[i] == 1] if dims is None else list(dims)
    return ops.squeeze(x, axis=tuple(single)) if single else x


def _expand(x: Any, dim: int) -> Any:
    return ops.expand_dims(x, dim)


def _unsqueeze(x: Any, pos: int, row: int | None) -> Any:
    # As BigDL counts: from 1, and 0 is the place behind the last dimension.
    rank = len(x.shape)
    place = (rank + pos + 1 if pos <= 0 else pos) + (0 if row is None else rank - row)
    if not 1 <= place <= rank + 1:
        raise ModelError(
            f"`pos` of Unsqueeze must be a place among {rank} dimensions. Received: {pos}, with "
            f"{'no' if row is None else row} dimensions of a row."
        )
    return ops.expand_dims(x, place - 1)


def _behind_batch(x: Any, dim: int, row: int) -> int:
    """A dimension where it may be a row's: it is one if the input has just one dimension more than rows have."""
    rank = len((x[0] if isinstance(x, (list, tuple)) else x).shape)
    return dim + 1 if 0 < row == rank - 1 and dim >= 0 else dim


def _of_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function along a dimension, which may be one of rows that have `row` dimensions."""

    def call(x: Any, dim: int, row: int = 0, **options: Any) -> Any:
        return function(x, _behind_batch(x, dim, row), **options)

    return call


def _replicate(x: Any, dim: int, count: int, row: int | None = None) -> Any:
    place = dim + 1 if row is not None and len(x.shape) > row else dim
    return ops.repeat(ops.expand_dims(x, place), count, axis=place)


def _normalize(x: Any, p: float, eps: float) -> Any:
    if len(x.shape) not in (2, 4):
        raise ModelError(f"Normalize takes rows of numbers or images. Received: the shape {tuple(x.shape)}.")
    sizes = ops.abs(x)
    if math.isinf(p):
        return x / (ops.max(sizes, axis=1, keepdims=True) + eps)
    return x / (ops.sum(sizes**p, axis=1, keepdims=True) + eps) ** (1 / p)


def _max(x: Any, dim: int, return_value: bool) -> Any:
    # BigDL counts places from 1.
    return ops.max(x, axis=dim) if return_value else ops.cast(ops.argmax(x, axis=dim) + 1, x.dtype)


def _shape(x: Any) -> Any:
    return ops.cast(ops.convert_to_tensor(ops.shape(x)), "float32")


def _across_channels(x: Any, alpha: float, k: float, beta: float, n: int, axis: int) -> Any:
    around = [(0, 0)] * len(x.shape)
    before = (n - 1) // 2
    around[axis] = (before, n - 1 - before)
    squares, size = ops.pad(ops.square(x), around), x.shape[axis]
    total = sum(_narrow(squares, axis, i, size) for i in range(n))
    return x / ops.power(k + alpha / n * total, beta)


def _within_channels(x: Any, size: int, alpha: float, beta: float) -> Any:
    # Windows over an edge are divided by all of their points, too.
    pad = (size - 1) // 2
    if len(x.shape) == 3:  # an image of one channel, as BigDL's layer takes it
        return ops.squeeze(_within_channels(ops.expand_dims(x, 1), size, alpha, beta), 1)
    squares = ops.pad(ops.square(x), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    means = ops.average_pool(squares, size, strides=1, padding="valid", data_format="channels_first")
    return x * ops.power(1 + alpha * means, -beta)


def _resized(x: Any, height: int, width: int, align_corners: bool, first: bool) -> Any:
    moved = ops.transpose(x, (0, 2, 3, 1)) if first else x
    found = tf.raw_ops.ResizeBilinear(
        images=moved, size=[height, width], align_corners=align_corners, half_pixel_centers=False
    )
    return ops.transpose(found, (0, 3, 1, 2)) if first else found


def _padded_pool(
    x: Any,
    kind: str,
    size: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    *,
    first: bool,
    ceil: bool = False,
    same: bool = False,
) -> Any:
    sizes = x.shape[2:] if first else x.shape[1:-1]
    inner = [(pad, pad) for pad in pads]
    # What fills up the last window; it is no part of a mean.
    more = [(0, _missing(*each) if ceil else 0) for each in zip(sizes, size, strides, pads, strict=True)]
    layout = {"padding": "same" if same else "valid", "data_format": "channels_first" if first else "channels_last"}

    def pool(function: Any, values: Any, **named: Any) -> Any:
        return function(ops.pad(values, _widths(more, first), **named), tuple(size), tuple(strides), **layout)

    if kind == "max":
        lowest = tf.constant(x.dtype.min, x.dtype)
        padded = ops.pad(x, _widths(inner, first), constant_values=lowest)
        return pool(ops.max_pool, padded, constant_values=lowest)
    ones = ops.pad(ops.ones_like(x), _widths(inner, first), constant_values=float(kind == "mean_with_zeros"))
    return pool(ops.average_pool, ops.pad(x, _widths(inner, first))) / pool(ops.average_pool, ones)


def _widths(around: Sequence[tuple[int, int]], first: bool) -> list[tuple[int, int]]:
    return [(0, 0), (0, 0), *around] if first else [(0, 0), *around, (0, 0)]


def _missing(length: int, size: int, stride: int, pad: int) -> int:
    padded = length + 2 * pad
    count = -(-(padded - size) // stride) + 1
    if (count - 1) * stride >= length + pad:
        count -= 1
    return max(0, (count - 1) * stride + size - padded)


def _cosine(x: Sequence[Any]) -> Any:
    left, right = (ops.normalize(each, axis=-1) for each in x)
    return ops.expand_dims(ops.sum(left * right, axis=-1, keepdims=True), -1)


def _split(x: Any, dim: int) -> list[Any]:
    return [_select(x, dim, index) for index in range(x.shape[dim])]


def _swapped(x: Any, pairs: Sequence[Sequence[int]]) -> Any:
    for left, right in pairs:
        x = ops.swapaxes(x, left, right)
    return x


def _flat(x: Any) -> list[Any]:
    return [leaf for each in x for leaf in (_flat(each) if isinstance(each, (list, tuple)) else [each])]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add_constant": lambda x, constant: x + constant,
    "mul_constant": lambda x, constant: x * constant,
    "exp": ops.exp,
    "log": ops.log,
    "sqrt": ops.sqrt,
    "square": ops.square,
    "negative": ops.negative,
    "power": _power,
    "identity": lambda x: x,
    "hard_shrink": lambda x, value: ops.where(ops.abs(x) > value, x, ops.zeros_like(x)),
    "soft_shrink": _soft_shrink,
    "hard_tanh": _hard_tanh,
    "threshold": _threshold,
    "binary_threshold": _binary_threshold,
    "select": _select,
    "narrow": _narrow,
    "squeeze": _squeeze,
    "expand": _expand,
    "max": _of_rows(_max),
    "shape": _shape,
    "select_table": lambda x, index: x[index],
    "across_channels": _across_channels,
    "within_channels": _within_channels,
    "resized": _resized,
    "padded_pool": _padded_pool,
    "divide": lambda x: x[0] / x[1],
    "cosine": _cosine,
    "abs": ops.abs,
    "sum": _of_rows(lambda x, dim, keep: ops.sum(x, axis=dim, keepdims=keep)),
    "mean": _of_rows(lambda x, dim, keep: ops.mean(x, axis=dim, keepdims=keep)),
    "places": lambda x, dims: ops.mean(x, axis=dims, keepdims=True),
    "min": _of_rows(lambda x, dim: ops.min(x, axis=dim)),
    "join": _of_rows(lambda x, dim: ops.concatenate(x, axis=dim)),
    "split": _of_rows(_split),
    "flat": _flat,
    "swapped": _swapped,
    "reverse": lambda x, dim: ops.flip(x, axis=dim),
    "replicate": _replicate,
    "unsqueeze": _unsqueeze,
    "softplus": lambda x, beta: ops.softplus(beta * x) / beta,
    "normalize": _normalize,
    "product": lambda x: ops.sum(x[0] * x[1], axis=-1),
    "matrices": lambda x, left, right: ops.matmul(
        ops.swapaxes(x[0], -1, -2) if left else x[0], ops.swapaxes(x[1], -1, -2) if right else x[1]
    ),
}
MOVED = frozenset({"identity", "select", "narrow", "squeeze", "expand", "shape", "select_table"})
