"""Layers that return ids: the highest column, a drawn one, the end of a sentence. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.arrivals import vectors, wrong_kind
from keraunos.compat.paddle.lowering.call import BAG, IDS, Call, Value, lowers

ops = keras.ops


@lowers("maxid", applies_activation=True)
def maxid(call: Call) -> Value:
    """Returns the id of the highest column.

    With a `beam_size`, the bag of that many highest ones, the first one first.
    """
    tensor, mask = vectors(call, 0), call.inputs[0].mask
    best = int(call.attributes.get("beam_size") or 1)
    if best == 1:
        return Value(ops.cast(ops.argmax(tensor, axis=-1), "int32"), mask, IDS)
    return Value(ops.cast(ops.top_k(tensor, best)[1], "int32"), mask, BAG)


@lowers("sampling_id", applies_activation=True, draws=True)
def sampling_id(call: Call) -> Value:
    """Returns an id drawn with the probabilities that the columns hold."""
    tensor, mask = vectors(call, 0), call.inputs[0].mask
    logs = ops.log(ops.maximum(ops.reshape(tensor, (-1, tensor.shape[-1])), 1e-30))
    drawn: Any = keras.random.categorical(logs, 1, dtype="int32", seed=call.random)
    return Value(ops.reshape(drawn, (-1, *ops.shape(tensor)[1:-1])), mask, IDS)


@lowers("eos_id", applies_activation=True)
def eos_id(call: Call) -> Value:
    """1 where the id is the one that ends a sentence, otherwise 0."""
    value = call.inputs[0]
    if value.kind != IDS:
        raise wrong_kind(call, 0, "ids", "A maxid layer makes ids of vectors")
    return Value(ops.cast(ops.equal(value.tensor, int(call.attributes["eos_id"])), "int32"), value.mask, IDS)
