"""Costs that use a few of many classes: nce and hsigmoid. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.activations import activate
from keraunos.compat.paddle.lowering.arrivals import ids
from keraunos.compat.paddle.lowering.call import Call, Value, lowers
from keraunos.compat.paddle.lowering.costs import over_steps

ops = keras.ops


@lowers("nce", is_cost=True, draws=True, applies_activation=True)
def nce(call: Call) -> Value:
    """Noise-contrastive estimation: the label's class against classes that are drawn, in training and elsewhere.

    With `o` what a class gets behind the activation (a sigmoid, if none is named) and `b` how often it is expected
    among the drawn ones, the label costs `-log(o / (o + b))` and each drawn class `-log(b / (o + b))`.
    """
    inputs = _weighted_inputs(call)
    label = _label(call, inputs)
    noise = _drawn(call, ops.shape(label))
    named = ops.concatenate([label[..., None], noise], axis=-1)
    output = activate(call.layer.active_type or "sigmoid", _scores(call, inputs, named))
    expected = _expected(call, named, output)
    of_label = ops.log(output[..., :1]) - ops.log(output[..., :1] + expected[..., :1])
    of_noise = ops.log(expected[..., 1:]) - ops.log(output[..., 1:] + expected[..., 1:])
    cost = -ops.sum(ops.concatenate([of_label, of_noise], axis=-1), axis=-1)
    if len(call.inputs) > inputs + 1:
        cost = cost * ops.reshape(call.inputs[inputs + 1].tensor, ops.shape(cost))
    return Value(over_steps(cost, call.inputs[0].mask))


@lowers("hsigmoid", is_cost=True)
def hsigmoid(call: Call) -> Value:
    """`-log P(label)`, where a class is a leaf of a binary tree and each node on the way to it decides by a sigmoid.

    Nodes are numbered level by level, as in a heap. Paddle also adds the logarithm of 2 for each level that a shorter
    way does not have; it is in no gradient, and left out here, so that the costs of all classes are those of
    probabilities.
    """
    inputs = _weighted_inputs(call)
    classes = int(call.attributes["num_classes"])
    levels = ops.arange((classes - 1).bit_length(), dtype="int32")
    leaf = (_label(call, inputs) + classes)[..., None]
    nodes = ops.right_shift(leaf, levels + 1) - 1
    decisions = ops.bitwise_and(ops.right_shift(leaf, levels), 1)
    scores = _scores(call, inputs, ops.maximum(nodes, 0))
    # Paddle cuts the scores to where its exponential is sure, but not their gradient.
    scores = scores + ops.stop_gradient(ops.clip(scores, -40.0, 40.0) - scores)
    on_way = ops.cast(nodes >= 0, scores.dtype)
    cost = (ops.softplus(scores) - scores * ops.cast(decisions, scores.dtype)) * on_way
    return Value(over_steps(ops.sum(cost, axis=-1), call.inputs[0].mask))


def _weighted_inputs(call: Call) -> int:
    """Returns how many inputs have a weight; the label comes after them."""
    return sum(each.parameter is not None for each in call.layer.inputs)


def _label(call: Call, at: int) -> Any:
    return ops.maximum(ids(call, at), 0)


def _scores(call: Call, inputs: int, named: Any) -> Any:
    """Returns the scores of the named classes or nodes, (…, places), before any activation."""
    total = None if call.bias is None else ops.take(call.bias, named, axis=0)
    for at in range(inputs):
        tensor = call.inputs[at].tensor
        rows = ops.take(ops.reshape(call.weight(at), (-1, tensor.shape[-1])), named, axis=0)
        part = ops.sum(rows * tensor[..., None, :], axis=-1)
        total = part if total is None else total + part
    return total


def _drawn(call: Call, shape: Any) -> Any:
    """Class numbers drawn for each label, as many as the layer declares, by its distribution or uniformly."""
    classes, count = int(call.attributes["num_classes"]), int(call.attributes["num_neg_samples"])
    spread = call.attributes.get("neg_sampling_dist")
    wanted = (*shape, count)
    if not spread:
        return keras.random.randint(wanted, 0, classes, dtype="int32", seed=call.random)
    edges = ops.cumsum(ops.convert_to_tensor(list(spread), dtype="float32"))
    drawn = keras.random.uniform(wanted, dtype="float32", seed=call.random)
    found = ops.searchsorted(edges, ops.reshape(drawn, (-1,)), side="right")
    return ops.reshape(ops.minimum(ops.cast(found, "int32"), classes - 1), wanted)


def _expected(call: Call, named: Any, like: Any) -> Any:
    """How often each of the named classes is expected among the drawn ones."""
    classes, count = int(call.attributes["num_classes"]), int(call.attributes["num_neg_samples"])
    spread = call.attributes.get("neg_sampling_dist")
    if not spread:
        return ops.full_like(like, count / classes)
    return count * ops.take(ops.convert_to_tensor(list(spread), dtype=like.dtype), named, axis=0)
