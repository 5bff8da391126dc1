"""Sequences as padded tensors: what every layer that goes over steps needs. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keraunos.compat.paddle.lowering.arrivals import ids
from keraunos.compat.paddle.lowering.call import DENSE, IDS, Call, Value
from keraunos.errors import ModelError

ops = keras.ops

# Instead of the logarithm of 0, whose differences have no value.
LOG_ZERO = -1e30

Step = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]


def a_sequence(call: Call, at: int) -> Value:
    """Returns one input, which must be a sequence of vectors."""
    value = call.inputs[at]
    if not value.is_sequence or value.kind != DENSE:
        received = f"a sequence of {value.kind}" if value.is_sequence else f"one row of {value.kind}"
        raise ModelError(
            f"Layer {call.layer.name!r} ({call.layer.type}) goes over the steps of a sequence: input {at}, "
            f"{call.layer.inputs[at].layer!r}, must be a sequence of vectors. Received: {received}. Say that the data "
            "layer behind it is a 'dense_vector_sequence', or an 'integer_value_sequence' behind a table projection."
        )
    return value


def labels(call: Call, at: int) -> Value:
    """Returns one input, which must be a sequence of class numbers; if there is no step, the number is 0."""
    value = call.inputs[at]
    tensor = ids(call, at)
    if not value.is_sequence:
        raise ModelError(
            f"Layer {call.layer.name!r} ({call.layer.type}) takes sequences of labels: input {at}, "
            f"{call.layer.inputs[at].layer!r}, must be an 'integer_value_sequence'. Received: one number a row."
        )
    return Value(ops.maximum(tensor, 0), value.mask, IDS)


def flat_only(call: Call) -> None:
    """Refuse what is about sequences of sequences."""
    kind = call.attributes.get("trans_type", "non-seq")
    if kind != "non-seq":
        raise ModelError(
            f"Layer {call.layer.name!r} ({call.layer.type}): sequences of sequences are not run here, so `trans_type` "
            f"must be 'non-seq'. Received: {kind!r}. Make each inner sequence a row of its own."
        )


def lengths(mask: Any) -> Any:
    """Returns how many steps each row has."""
    return ops.sum(ops.cast(mask, "int32"), axis=1)


def presence(mask: Any, like: Any) -> Any:
    """1 for existing steps and 0 for others, (rows, steps, 1), in the type of another tensor."""
    return ops.cast(mask, like.dtype)[..., None]


def only_present(tensor: Any, mask: Any) -> Any:
    """Returns the sequence with zeros if a row has no step, whatever stood there."""
    return ops.where(mask[..., None], tensor, ops.zeros_like(tensor))


def picked(tensor: Any, at: Any) -> Any:
    """Returns the steps of each row that `at` (rows, places) names, as (rows, places, size).

    Numbers are cut to what exists.
    """
    last = ops.shape(tensor)[1] - 1
    places = ops.minimum(ops.maximum(ops.cast(at, "int32"), 0), last)
    return ops.take_along_axis(tensor, places[..., None], axis=1)


def chosen(tensor: Any, at: Any) -> Any:
    """Returns the element of the last axis that `at` names."""
    return ops.squeeze(ops.take_along_axis(tensor, ops.cast(at, "int32")[..., None], axis=-1), axis=-1)


def steps_taken(
    step: Step, first: Sequence[Any], tensor: Any, mask: Any, *, reverse: bool = False
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Go through the steps of all rows with states.

    Args:
        step: new states, (rows, width) each, from the states before and what the step holds.
        first: the states before the first step.
        tensor: the sequence, (rows, steps, size).
        mask: of it. A missing step does not change the states, so that a reversed row starts at
            its own last step.
        reverse: from the last step to the first.

    Returns:
        The states at the end; and what each was after each step, (rows, steps, width), zeros if there is no step.
    """
    limit, move = lengths(mask)[:, None], -1 if reverse else 1

    # The number of the step is a state as well: TensorFlow's scan takes no second tensor for the mask where the steps
    # are not counted beforehand, and wants what is collected to look like the states.
    def taken(states: tuple[Any, ...], held: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        at, before = states[0], states[1:]
        after = step(before, held)
        new = tuple(ops.where(at < limit, here, there) for here, there in zip(after, before, strict=True))
        return (at + move, *new), (at, *new)

    start = ops.zeros((1, 1), dtype="int32")
    if reverse:
        start = start + ops.shape(tensor)[1] - 1
    (_, *at_end), (_, *after) = ops.scan(taken, (start, *first), ops.swapaxes(tensor, 0, 1), reverse=reverse)
    return at_end, [only_present(ops.swapaxes(each, 0, 1), mask) for each in after]
