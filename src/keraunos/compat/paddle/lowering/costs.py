"""Costs of a row at a time. Runs on the driver and on workers.

A cost of a sequence is the sum over its steps.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import Call, Value, lowers

ops = keras.ops


def over_steps(cost: Any, mask: Any) -> Any:
    """A row's cost from that of its steps."""
    return cost if mask is None else ops.sum(cost * ops.cast(mask, cost.dtype), axis=1)


@lowers("multi-class-cross-entropy", is_cost=True)
def cross_entropy(call: Call) -> Value:
    """`-log p[label]`."""
    output, label = call.inputs[0], call.inputs[1]
    ids = ops.maximum(label.tensor, 0)
    chosen = ops.squeeze(ops.take_along_axis(output.tensor, ids[..., None], axis=-1), axis=-1)
    return Value(over_steps(weighted(call, -ops.log(chosen)), output.mask))


def weighted(call: Call, cost: Any) -> Any:
    """The cost times the rows' weights, where the layer has a third input."""
    if len(call.inputs) < 3:
        return cost
    return cost * ops.reshape(call.inputs[2].tensor, ops.shape(cost))
