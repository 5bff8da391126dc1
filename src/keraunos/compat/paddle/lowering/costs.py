"""Costs of a row at a time. Runs on the driver and on workers.

A cost of a sequence is the sum over its steps.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.activations import cut
from keraunos.compat.paddle.lowering.arrivals import ids, several_hot, vectors
from keraunos.compat.paddle.lowering.call import BAG, DENSE, IDS, Call, Value, lowers

ops = keras.ops

# Less than any probability that Paddle's softmax or sigmoid gives; it keeps logarithms and their gradients numbers.
_LEAST = 1e-30


@lowers("multi-class-cross-entropy", is_cost=True)
def cross_entropy(call: Call) -> Value:
    """`-log p[label]`."""
    return summed(call, -_log(_of_label(call)))


@lowers("multi_class_cross_entropy_with_selfnorm", is_cost=True)
def cross_entropy_with_selfnorm(call: Call) -> Value:
    """`-log(p[label] / Z) + alpha log² Z`; `Z` is the sum of the outputs, which need not be normalized."""
    logarithm = _log(ops.sum(vectors(call, 0), axis=-1))
    alpha = float(call.attributes.get("softmax_selfnorm_alpha", 0.1))
    return summed(call, logarithm - _log(_of_label(call)) + alpha * ops.square(logarithm))


@lowers("square_error", is_cost=True)
def square_error(call: Call) -> Value:
    """Returns the sum of the squares of the differences; neither halved nor a mean."""
    output = vectors(call, 0)
    return summed(call, ops.sum(ops.square(output - _target(call, output)), axis=-1))


@lowers("smooth_l1", is_cost=True)
def smooth_l1(call: Call) -> Value:
    """Half the square of a difference below 1, the difference less a half above, summed."""
    output = vectors(call, 0)
    distance = ops.abs(output - _target(call, output))
    return summed(call, ops.sum(ops.where(distance < 1.0, 0.5 * ops.square(distance), distance - 0.5), axis=-1))


@lowers("soft_binary_class_cross_entropy", is_cost=True)
def soft_binary_class_cross_entropy(call: Call) -> Value:
    """Returns the cross entropy between probabilities of each column, summed."""
    output = vectors(call, 0)
    target = _target(call, output)
    return summed(call, -ops.sum(target * _log(output) + (1.0 - target) * _log(1.0 - output), axis=-1))


@lowers("multi_binary_label_cross_entropy", is_cost=True)
def multi_binary_label_cross_entropy(call: Call) -> Value:
    """Returns the cross entropy of each column with a yes or a no, summed; a number above a half is a yes."""
    output, label = vectors(call, 0), call.inputs[1]
    noes = -_log(1.0 - output)
    if label.kind == DENSE:
        return summed(call, ops.sum(ops.where(label.tensor > 0.5, -_log(output), noes), axis=-1))
    # A list of the columns that are a yes is looked up: no vector as wide as the output is made of it.
    places = label.tensor if label.kind == BAG else label.tensor[..., None]
    at = ops.maximum(places, 0)
    change = -_log(ops.take_along_axis(output, at, axis=-1)) - ops.take_along_axis(noes, at, axis=-1)
    return summed(call, ops.sum(noes, axis=-1) + ops.sum(change * ops.cast(places >= 0, output.dtype), axis=-1))


@lowers("huber", is_cost=True)
def huber(call: Call) -> Value:
    """Two classes by the sign of a number: 0 beyond the margin, a square within it, a line on the wrong side."""
    output = ops.squeeze(vectors(call, 0), axis=-1)
    agreed = output * (2.0 * ops.cast(ids(call, 1), output.dtype) - 1.0)
    within = ops.square(ops.maximum(1.0 - agreed, 0.0))
    return summed(call, ops.where(agreed < -1.0, -4.0 * agreed, within))


@lowers("sum_cost", is_cost=True)
def sum_cost(call: Call) -> Value:
    """Returns the sum of a row."""
    return summed(call, ops.sum(vectors(call, 0), axis=-1))


@lowers("classification_error", is_cost=True)
def classification_error(call: Call) -> Value:
    """1 where the highest column is not the label's; it has no gradient."""
    output = vectors(call, 0)
    highest = ops.cast(ops.argmax(output, axis=-1), "int32")
    return summed(call, ops.cast(ops.not_equal(highest, ops.cast(ids(call, 1), "int32")), output.dtype))


def summed(call: Call, cost: Any) -> Value:
    """Returns the rows' costs, from those of rows or steps, with the weights of a third input."""
    return Value(over_steps(weighted(call, cost), call.inputs[0].mask))


def over_steps(cost: Any, mask: Any) -> Any:
    """Returns a row's cost from that of its steps."""
    return cost if mask is None else ops.sum(ops.where(mask, cost, ops.zeros_like(cost)), axis=1)


def weighted(call: Call, cost: Any) -> Any:
    """Returns the cost times the weights of rows or steps, where the layer has a third input."""
    if len(call.inputs) < 3:
        return cost
    weight = ops.squeeze(vectors(call, 2), axis=-1)
    # The weight of a row is that of all its steps.
    return cost * (weight if len(weight.shape) == len(cost.shape) else weight[:, None])


def _log(tensor: Any) -> Any:
    return ops.log(cut(tensor, least=_LEAST))


def _of_label(call: Call) -> Any:
    """Returns the column that the label names."""
    chosen = ops.take_along_axis(vectors(call, 0), ops.maximum(ids(call, 1), 0)[..., None], axis=-1)
    return ops.squeeze(chosen, axis=-1)


def _target(call: Call, output: Any) -> Any:
    """The label as numbers as wide as the output: ids as the one column that is 1, or as numbers beside one column."""
    label = call.inputs[1]
    if label.kind == BAG:
        return several_hot(label, output.shape[-1], output.dtype)
    if label.kind == IDS:
        if output.shape[-1] == 1:
            return ops.cast(label.tensor, output.dtype)[..., None]
        return several_hot(label._replace(tensor=label.tensor[..., None]), output.shape[-1], output.dtype)
    return label.tensor
