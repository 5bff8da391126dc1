"""Costs of sequences of labels: crf, ctc, and the labels that a crf finds. Runs on the driver and on workers.

Sums over all paths are worked out step by step in logarithms, for all rows at once.
"""

from __future__ import annotations

from typing import Any

import keras

from keraunos.compat.paddle.lowering.call import DENSE, IDS, Call, Value, lowers
from keraunos.compat.paddle.lowering.steps import (
    LOG_ZERO,
    a_sequence,
    chosen,
    labels,
    lengths,
    steps_taken,
)

ops = keras.ops


@lowers("crf", is_cost=True)
def crf(call: Call) -> Value:
    """`-log P(labels)` of a chain whose weight holds scores of starting, of ending and of each change of label."""
    value, label = a_sequence(call, 0), labels(call, 1)
    starting, ending, changing = _chain(call)
    scores, mask = value.tensor, value.mask

    def step(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        return (ops.logsumexp(states[0][:, :, None] + changing, axis=1) + held,)

    (total,), _ = steps_taken(step, [scores[:, 0] + starting], scores[:, 1:], mask[:, 1:])
    every = ops.logsumexp(total + ending, axis=1)
    cost = every - _path_score(scores, mask, label.tensor, (starting, ending, changing))
    cost = ops.where(lengths(mask) > 0, cost, ops.zeros_like(cost))
    return Value(cost if len(call.inputs) < 3 else cost * ops.reshape(call.inputs[2].tensor, (-1,)))


@lowers("crf_decoding")
def crf_decoding(call: Call) -> Value:
    """Returns the best sequence of labels; with labels to compare, 1 for each step that differs and 0 for others.

    In the second case the labels that were found are the further output `ids`.
    """
    value = a_sequence(call, 0)
    found = _best_path(value.tensor, value.mask, *_chain(call))
    if len(call.inputs) == 1:
        return Value(found, value.mask, IDS)
    wrong = ops.logical_and(ops.not_equal(found, labels(call, 1).tensor), value.mask)
    return Value(ops.cast(wrong, value.tensor.dtype)[..., None], value.mask, DENSE, {"ids": found})


@lowers("ctc", is_cost=True)
def ctc(call: Call) -> Value:
    """`-log P(labels)` over all alignments; the input is a softmax, whose last class is the blank."""
    value = a_sequence(call, 0)
    # The smallest number that Paddle takes a logarithm of.
    logarithms = ops.log(ops.maximum(value.tensor, 1.17549435e-38))
    return _alignments(call, logarithms, value.mask, blank=value.tensor.shape[-1] - 1)


@lowers("warp_ctc", is_cost=True)
def warp_ctc(call: Call) -> Value:
    """`-log P(labels)` over all alignments; the input has no activation, and `blank` names the blank."""
    value = a_sequence(call, 0)
    return _alignments(call, ops.log_softmax(value.tensor, axis=-1), value.mask, int(call.attributes.get("blank", 0)))


def _chain(call: Call) -> tuple[Any, Any, Any]:
    size = call.inputs[0].tensor.shape[-1]
    weight = ops.reshape(call.weight(0), (size + 2, size))
    return weight[0], weight[1], weight[2:]


def _path_score(scores: Any, mask: Any, path: Any, chain: tuple[Any, Any, Any]) -> Any:
    """Returns the score of one sequence of labels per row."""
    starting, ending, changing = chain
    present = ops.cast(mask, scores.dtype)
    size = scores.shape[-1]
    steps = ops.sum(chosen(scores, path) * present, axis=1)
    changes = ops.take(ops.reshape(changing, (-1,)), path[:, :-1] * size + path[:, 1:], axis=0)
    last = chosen(path, ops.maximum(lengths(mask) - 1, 0))
    ends = ops.take(starting, path[:, 0], axis=0) + ops.take(ending, last, axis=0)
    return steps + ops.sum(changes * present[:, 1:], axis=1) + ends


def _best_path(scores: Any, mask: Any, starting: Any, ending: Any, changing: Any) -> Any:
    first = scores[:, 0] + starting

    def onward(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        ways = states[0][:, :, None] + changing
        return ops.max(ways, axis=1) + held, ops.cast(ops.argmax(ways, axis=1), "int32")

    def back(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        return (chosen(held, states[0][:, 0])[:, None],)

    states = [first, ops.zeros_like(first, dtype="int32")]
    (total, _), (_, came_from) = steps_taken(onward, states, scores[:, 1:], mask[:, 1:])
    last = ops.cast(ops.argmax(total + ending, axis=-1), "int32")[:, None]
    _, (before,) = steps_taken(back, [last], came_from, mask[:, 1:], reverse=True)
    path = ops.pad(before[..., 0], [[0, 0], [0, 1]])
    at_end = ops.arange(ops.shape(scores)[1], dtype="int32")[None, :] == lengths(mask)[:, None] - 1
    return ops.where(at_end, last, path)


def _alignments(call: Call, logarithms: Any, mask: Any, blank: int) -> Value:
    """Returns the cost of labels whose every alignment to the steps counts: repeated, and with blanks between them.

    A row with fewer steps than its labels need costs nothing and moves nothing, as in Paddle.
    """
    label = labels(call, 1)
    # A blank before, between and behind the labels; what is behind a row's own end is never read.
    blanks = ops.full_like(label.tensor, blank)
    ids = ops.where(label.mask, label.tensor, blanks)
    places = ops.shape(ids)[1] * 2 + 1
    spread = ops.pad(
        ops.reshape(ops.stack([blanks, ids], axis=-1), (-1, places - 1)), [[0, 0], [0, 1]], constant_values=blank
    )
    differs = ops.not_equal(spread, ops.pad(spread, [[0, 0], [2, 0]], constant_values=-1)[:, :-2])
    may_skip = ops.logical_and(differs, ops.not_equal(spread, blank))
    wide = ops.broadcast_to(spread[:, None, :], (ops.shape(spread)[0], ops.shape(logarithms)[1], places))
    emitted = ops.take_along_axis(logarithms, wide, axis=-1)
    nothing = ops.full_like(emitted[:, 0], LOG_ZERO)

    def step(states: tuple[Any, ...], held: Any) -> tuple[Any, ...]:
        one = ops.pad(states[0], [[0, 0], [1, 0]], constant_values=LOG_ZERO)[:, :-1]
        two = ops.pad(states[0], [[0, 0], [2, 0]], constant_values=LOG_ZERO)[:, :-2]
        ways = ops.stack([states[0], one, ops.where(may_skip, two, nothing)], axis=0)
        return (ops.logsumexp(ways, axis=0) + held,)

    first = ops.where(ops.arange(places)[None, :] < 2, emitted[:, 0], nothing)
    (total,), _ = steps_taken(step, [first], emitted[:, 1:], mask[:, 1:])
    count, steps = lengths(label.mask), lengths(mask)
    with_label = ops.where(count > 0, chosen(total, ops.maximum(2 * count - 1, 0)), nothing[:, 0])
    cost = -ops.logaddexp(chosen(total, 2 * count), with_label)
    repeats = ops.logical_and(ops.equal(ids[:, 1:], ids[:, :-1]), label.mask[:, 1:])
    needed = ops.maximum(count + lengths(repeats), 1)
    return Value(_by_times(call, ops.where(steps >= needed, cost, ops.zeros_like(cost)), steps))


def _by_times(call: Call, cost: Any, steps: Any) -> Any:
    """Returns the cost, whose gradient is divided by the number of steps where the layer asks for that."""
    if not call.attributes.get("norm_by_times", False):
        return cost
    share = 1.0 / ops.cast(ops.maximum(steps, 1), cost.dtype)
    return share * cost + ops.stop_gradient((1.0 - share) * cost)
