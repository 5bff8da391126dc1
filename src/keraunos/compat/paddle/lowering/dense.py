"""Layers of plain vectors: fc, selective_fc, addto, concat and the like. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import BAG, DENSE, Call, Value, lowers

ops = keras.ops


@lowers("fc", "mkldnn_fc")
def fc(call: Call) -> Value:
    """The sum over the inputs of `x W`, and the bias."""
    total, mask = None, None
    for at, value in enumerate(call.inputs):
        weight = ops.reshape(call.weight(at), (-1, call.layer.size))
        part = rows_of(weight, value) if value.kind == BAG else ops.matmul(value.tensor, weight)
        total = part if total is None else total + part
        mask = value.mask if mask is None else mask
    return Value(total if call.bias is None else total + call.bias, mask, DENSE)


def rows_of(weight: Any, bag: Value) -> Any:
    """The sum of the rows of a matrix that a bag of ids names."""
    present = ops.cast(bag.tensor >= 0, weight.dtype)[..., None]
    return ops.sum(ops.take(weight, ops.maximum(bag.tensor, 0), axis=0) * present, axis=-2)
