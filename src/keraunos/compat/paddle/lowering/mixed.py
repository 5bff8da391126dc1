"""Mixed layers: sums of projections and operators; and concat2, projections side by side.

Runs on the driver and on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras

from keraunos.compat.paddle.lowering.arrivals import shared_mask, vectors, with_bias, wrong_kind
from keraunos.compat.paddle.lowering.call import BAG, DENSE, Call, Value, lowers
from keraunos.compat.paddle.lowering.convolution import (
    convolved,
    convolved_each,
    kernel,
    spread,
    spread_each,
    turned,
)
from keraunos.compat.paddle.lowering.dense import product, rows_of
from keraunos.compat.paddle.lowering.planes import flat, image, image_of, like
from keraunos.errors import ModelError, one_of

ops = keras.ops

Settings = Mapping[str, Any]


@lowers("mixed")
def mixed(call: Call) -> Value:
    """Returns the sum of the projections and the operators, and the bias."""
    mask = shared_mask(call)
    parts = [_projected(call, at) for at, each in enumerate(call.layer.inputs) if "proj" in each.settings]
    parts += [_operated(call, each) for each in call.layer.operators]
    return Value(_biased(call, sum(parts[1:], start=parts[0])), mask)


@lowers("concat2")
def concat2(call: Call) -> Value:
    """Returns the projections side by side, and the bias."""
    mask = shared_mask(call)
    parts = [_projected(call, at) for at in range(len(call.inputs))]
    return Value(_biased(call, ops.concatenate(parts, axis=-1)), mask)


def _biased(call: Call, tensor: Any) -> Any:
    if call.bias is not None and call.attributes.get("shared_biases", False):
        # One for all places of a filter.
        return tensor + ops.repeat(call.bias, call.layer.size // call.bias.shape[0])
    return with_bias(call, tensor)


def _projected(call: Call, at: int) -> Any:
    told = call.settings(at, "proj")
    if told["type"] not in _PROJECTIONS:
        raise ModelError(f"Layer {call.layer.name!r}: " + one_of("projection", told["type"], _PROJECTIONS))
    return _PROJECTIONS[told["type"]](call, at, told)


def _table(call: Call, at: int, told: Settings) -> Any:
    """Returns the rows of the table that ids name; nothing for -1."""
    table, value = _matrix(call, at, told), call.inputs[at]
    if value.kind == DENSE:
        raise wrong_kind(call, at, "ids", "An fc projection takes vectors")
    if value.kind == BAG:
        return rows_of(table, value)
    present = ops.cast(value.tensor >= 0, table.dtype)[..., None]
    return ops.take(table, ops.maximum(value.tensor, 0), axis=0) * present


def _transposed(call: Call, at: int, told: Settings) -> Any:
    weight = ops.reshape(call.weight(at), (told["output_size"], told["input_size"]))
    return product(call, at, ops.transpose(weight))


def _offset(call: Call, at: int, told: Settings) -> Any:
    return vectors(call, at)[..., told["offset"] : told["offset"] + told["output_size"]]


def _context(call: Call, at: int, told: Settings) -> Any:
    """Returns each step with its neighbours; beyond the ends of a sequence there are zeros, or rows of a parameter."""
    value, steps = call.inputs[at], vectors(call, at)
    if value.mask is None:
        raise ModelError(
            f"Layer {call.layer.name!r} ({call.layer.type}): a context projection goes over the steps of a sequence. "
            f"Received: rows of {call.layer.inputs[at].layer!r} that are no sequences."
        )
    start, length = told["context_start"], told["context_length"]
    before, behind = max(0, -start), max(0, start + length - 1)
    padding = None
    if call.layer.inputs[at].parameter is not None:
        padding = ops.reshape(call.weight(at), (before + behind, told["input_size"]))
    present = ops.cast(value.mask, steps.dtype)[..., None]
    lengths = ops.sum(ops.cast(value.mask, "int32"), axis=1, keepdims=True)
    count = ops.shape(steps)[1]
    wide = ops.pad(steps * present, [(0, 0), (before, behind), (0, 0)])
    parts = []
    for offset in range(start, start + length):
        part = wide[:, before + offset : before + offset + count]
        if padding is not None:
            target = ops.arange(count, dtype="int32")[None, :] + offset
            outside = ops.logical_or(target < 0, target >= lengths)
            # Rows for what is before the sequence come first, the nearest last; then those for what is behind it.
            row = ops.where(target < 0, target + before, target - lengths + before)
            row = ops.clip(row, 0, before + behind - 1)
            part = part + ops.take(padding, row, axis=0) * ops.cast(outside, steps.dtype)[..., None]
        parts.append(part)
    return ops.concatenate(parts, axis=-1)


def _conv(call: Call, at: int, told: Settings) -> Any:
    conv = told["conv"]
    images = image(call, at, conv["channels"], conv["img_size_y"], conv["img_size"])
    filters = kernel(call.weight(at), conv, filters_last=False)
    return like(call.inputs[at], flat(convolved(images, filters, conv)))


def _convt(call: Call, at: int, told: Settings) -> Any:
    conv = told["conv"]
    images = image(call, at, conv["channels"], conv["output_y"], conv["output_x"])
    filters = kernel(call.weight(at), turned(conv), filters_last=False)
    return like(call.inputs[at], flat(spread(images, filters, conv)))


def _matrix(call: Call, at: int, told: Settings) -> Any:
    return ops.reshape(call.weight(at), (told["input_size"], told["output_size"]))


_PROJECTIONS: dict[str, Callable[[Call, int, Settings], Any]] = {
    "identity": lambda call, at, _: vectors(call, at),
    "identity_offset": _offset,
    "dot_mul": lambda call, at, _: vectors(call, at) * call.weight(at),
    "scaling": lambda call, at, _: vectors(call, at) * call.weight(at),
    "table": _table,
    "fc": lambda call, at, told: product(call, at, _matrix(call, at, told)),
    "trans_fc": _transposed,
    "context": _context,
    "conv": _conv,
    "convt": _convt,
}


def _operated(call: Call, told: Settings) -> Any:
    if told["type"] not in _OPERATORS:
        raise ModelError(f"Layer {call.layer.name!r}: " + one_of("operator", told["type"], _OPERATORS))
    return _OPERATORS[told["type"]](call, told)


def _dot_mul_operator(call: Call, told: Settings) -> Any:
    first, second = told["input_indices"]
    return float(told.get("dotmul_scale", 1.0)) * vectors(call, first) * vectors(call, second)


def _conv_operator(call: Call, told: Settings) -> Any:
    """Returns a row's image convolved with the row's own filters."""
    conv, (first, second) = told["conv"], told["input_indices"]
    images = image(call, first, conv["channels"], conv["img_size_y"], conv["img_size"])
    shape = (-1, told["num_filters"], conv["channels"], conv["filter_size_y"], conv["filter_size"])
    made = convolved_each(images, ops.reshape(vectors(call, second), shape), conv)
    return like(call.inputs[first], flat(made))


def _convt_operator(call: Call, told: Settings) -> Any:
    conv, (first, second) = told["conv"], told["input_indices"]
    images = image_of(vectors(call, first), conv["channels"], conv["output_y"], conv["output_x"])
    shape = (-1, conv["channels"], told["num_filters"], conv["filter_size_y"], conv["filter_size"])
    made = spread_each(images, ops.reshape(vectors(call, second), shape), conv)
    return like(call.inputs[first], flat(made))


_OPERATORS: dict[str, Callable[[Call, Settings], Any]] = {
    "dot_mul": _dot_mul_operator,
    "conv": _conv_operator,
    "convt": _convt_operator,
}
