"""Layers of sequences without a state: pooling over steps, parts of sequences, sequences side by side.

Runs on the driver and on workers. A row without any step gives zeros where one row of all steps is asked for.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.arrivals import ids, with_bias
from keraunos.compat.paddle.lowering.call import DENSE, Call, Value, lowers
from keraunos.compat.paddle.lowering.steps import (
    LOG_ZERO,
    a_sequence,
    flat_only,
    lengths,
    only_present,
    picked,
    presence,
)
from keraunos.errors import ModelError, one_of

ops = keras.ops


@lowers("max")
def max_over_steps(call: Call) -> Value:
    """Returns the highest of each column; the first step that has it takes the gradient.

    With `output_max_index` it is the number of that step, counted in its own sequence, without bias.
    """
    value = _pooled_input(call)
    low = ops.where(value.mask[..., None], value.tensor, ops.full_like(value.tensor, LOG_ZERO))
    best = ops.argmax(low, axis=1, keepdims=True)
    if call.attributes.get("output_max_index"):
        return Value(ops.cast(ops.squeeze(best, axis=1), value.tensor.dtype))
    present = only_present(value.tensor, value.mask)
    highest = ops.take_along_axis(present, ops.cast(best, "int32"), axis=1)
    return Value(with_bias(call, ops.squeeze(highest, axis=1)))


@lowers("average")
def average_over_steps(call: Call) -> Value:
    """Returns the mean of the steps, their sum, or their sum over the square root of their number."""
    value = _pooled_input(call)
    strategy = call.attributes.get("average_strategy", "average")
    total = ops.sum(only_present(value.tensor, value.mask), axis=1)
    count = ops.maximum(ops.sum(presence(value.mask, total), axis=1), 1.0)
    if strategy == "average":
        total = total / count
    elif strategy == "squarerootn":
        total = total / ops.sqrt(count)
    elif strategy != "sum":
        raise ModelError(
            f"Layer {call.layer.name!r}: " + one_of("average_strategy", strategy, ("average", "sum", "squarerootn"))
        )
    return Value(with_bias(call, total))


@lowers("seqlastins")
def last_step(call: Call) -> Value:
    """Returns the last step of a row, or its first with `select_first`."""
    return _one_step(call, first=bool(call.attributes.get("select_first", False)))


@lowers("seqfirstins")
def first_step(call: Call) -> Value:
    """Returns the first step of a row."""
    return _one_step(call, first=True)


@lowers("seqconcat")
def one_after_the_other(call: Call) -> Value:
    """Returns the steps of the first sequence, then those of the second."""
    first, second = a_sequence(call, 0), a_sequence(call, 1)
    both = ops.concatenate([first.tensor, second.tensor], axis=1)
    taken, total = lengths(first.mask)[:, None], lengths(first.mask) + lengths(second.mask)
    at = _numbers(both)
    # What is padded between the two is left out.
    source = ops.where(at < taken, at, at - taken + ops.shape(first.tensor)[1])
    mask = at < total[:, None]
    return Value(with_bias(call, only_present(picked(both, source), mask)), mask)


@lowers("seqreshape")
def other_width(call: Call) -> Value:
    """Returns the numbers of a row in steps of another width; zeros fill up a last step that is not whole."""
    value = call.inputs[0]
    tensor, mask = value.tensor, value.mask
    if value.kind != DENSE:
        a_sequence(call, 0)
    if mask is None:
        # A row that is no sequence is one of a single step.
        tensor = tensor[:, None, :]
        mask = ops.ones(ops.shape(tensor)[:2], dtype="bool")
    before, after = tensor.shape[2], call.layer.size
    rows, steps = ops.shape(tensor)[0], ops.shape(tensor)[1]
    count = (steps * before + after - 1) // after
    flat = ops.reshape(only_present(tensor, mask), (rows, steps * before))
    flat = ops.concatenate([flat, ops.zeros((rows, count * after - steps * before), dtype=flat.dtype)], axis=1)
    shaped = ops.reshape(flat, (rows, count, after))
    kept = (lengths(mask) * before + after - 1) // after
    return Value(with_bias(call, shaped), _numbers(shaped) < kept[:, None])


@lowers("subseq")
def part_of_sequence(call: Call) -> Value:
    """Returns a part of the first input: the second input is its start, the third its length."""
    value = a_sequence(call, 0)
    offset, count = _one_id(call, 1), _one_id(call, 2)
    at = _numbers(value.tensor)
    mask = ops.logical_and(at < count, at + offset < lengths(value.mask)[:, None])
    return Value(with_bias(call, only_present(picked(value.tensor, at + offset), mask)), mask)


@lowers("expand")
def for_each_step(call: Call) -> Value:
    """Returns a row repeated for each step of the sequence that the second input is."""
    flat_only(call)
    value, like = call.inputs[0], call.inputs[1]
    if value.is_sequence or value.kind != DENSE:
        raise ModelError(
            f"Layer {call.layer.name!r} (expand) repeats one row for each step of a sequence: input 0, "
            f"{call.layer.inputs[0].layer!r}, must be one vector a row. Received: "
            f"{'a sequence' if value.is_sequence else value.kind}. Sequences of sequences are not run here."
        )
    if like.mask is None:
        a_sequence(call, 1)
    return Value(with_bias(call, value.tensor[:, None, :] * presence(like.mask, value.tensor)), like.mask)


@lowers("get_output")
def named_output(call: Call) -> Value:
    """Returns a further output of a layer, which has been chosen where it enters."""
    value = call.inputs[0]
    return Value(value.tensor, value.mask, value.kind)


def _pooled_input(call: Call) -> Value:
    flat_only(call)
    stride = call.attributes.get("seq_pool_stride", -1)
    if stride != -1:
        raise ModelError(
            f"Layer {call.layer.name!r} ({call.layer.type}): pooling over windows of steps is not run here. Expected "
            f"stride=-1, for all steps of a row. Received: stride={stride!r}. Make each window a row of its own."
        )
    return a_sequence(call, 0)


def _one_step(call: Call, *, first: bool) -> Value:
    value = _pooled_input(call)
    count = lengths(value.mask)
    at = ops.zeros_like(count) if first else count - 1
    step = ops.squeeze(picked(only_present(value.tensor, value.mask), at[:, None]), axis=1)
    return Value(with_bias(call, step))


def _one_id(call: Call, at: int) -> Any:
    """Returns a number for each row, (rows, 1); Paddle's providers returned it as a sequence of one."""
    tensor = ids(call, at)
    return tensor[:, None] if call.inputs[at].mask is None else tensor[:, :1]


def _numbers(tensor: Any) -> Any:
    """Returns the numbers of the steps, (1, steps)."""
    return ops.arange(ops.shape(tensor)[1], dtype="int32")[None, :]
