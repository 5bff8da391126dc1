"""Checks of a layer function's inputs, and the errors for other inputs.

Runs on the driver and on workers.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import BAG, DENSE, IDS, Call, Value
from keraunos.errors import ModelError

ops = keras.ops

_WORDS = {DENSE: "vectors of numbers", IDS: "ids", BAG: "bags of ids"}


def vectors(call: Call, at: int) -> Any:
    """Returns the tensor of an input, which must be vectors of numbers."""
    value = call.inputs[at]
    if value.kind != DENSE:
        raise wrong_kind(call, at, "vectors of numbers", "A table projection makes vectors of ids")
    return value.tensor


def ids(call: Call, at: int) -> Any:
    """Returns the ids of an input; numbers in a single column count as ids."""
    value = call.inputs[at]
    if value.kind == IDS:
        return value.tensor
    if value.kind == DENSE and value.tensor.shape[-1] == 1:
        return ops.cast(ops.squeeze(value.tensor, axis=-1), "int32")
    raise wrong_kind(call, at, "ids", "Say that the data layer brings ids ('integer_value')")


def wrong_kind(call: Call, at: int, expected: str, advice: str) -> ModelError:
    """Returns the error for an input of a kind that the layer does not accept."""
    layer = call.layer
    return ModelError(
        f"Layer {layer.name!r} ({layer.type}): input {at} ({layer.inputs[at].layer!r}) must be {expected}. "
        f"Received: {_WORDS[call.inputs[at].kind]}. {advice}."
    )


def shared_mask(call: Call, count: int | None = None) -> Any:
    """Returns the mask of the inputs, or of the first few: all of them must be sequences, or none."""
    inputs = call.inputs if count is None else call.inputs[:count]
    masks = [value.mask for value in inputs]
    if any(mask is None for mask in masks) and any(mask is not None for mask in masks):
        layer = call.layer
        told = ", ".join(
            f"{each.layer!r} {'a sequence' if mask is not None else 'none'}" for each, mask in zip(layer.inputs, masks)
        )
        raise ModelError(
            f"Layer {layer.name!r} ({layer.type}): all inputs must be sequences, or none. Received: {told}. "
            "An expand layer makes a sequence of a row."
        )
    return masks[0]


def no_sequence(call: Call, why: str) -> None:
    """Refuse inputs that are sequences."""
    for at, value in enumerate(call.inputs):
        if value.is_sequence:
            layer = call.layer
            raise ModelError(
                f"Layer {layer.name!r} ({layer.type}): {why}. Expected rows that are no sequences. "
                f"Received: a sequence from {layer.inputs[at].layer!r}. Pool the sequence first."
            )


def with_bias(call: Call, tensor: Any) -> Any:
    """Returns the tensor with the layer's bias, if it has one."""
    return tensor if call.bias is None else tensor + call.bias


def several_hot(bag: Value, size: int, dtype: Any) -> Any:
    """Returns a bag of ids as a vector with 1 where the bag has an id."""
    present = ops.cast(bag.tensor >= 0, dtype)[..., None]
    return ops.max(ops.one_hot(ops.maximum(bag.tensor, 0), size, dtype=dtype) * present, axis=-2)
