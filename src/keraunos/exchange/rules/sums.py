"""The sums that rules are made of. Runs where the parameters live.

Contributions are always added up in the order in which they are given, which is that of their ranks and never that of
their arrival, so that a synchronous run gives the same bits each time. Any thread may call these functions; nothing is
kept between calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keraunos.exchange.rules.rule import Sent
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Vector

# Sums run block by block so that what is added stays in the processor's cache.
_BLOCK = 1 << 16


def mean_gradient(sent: Sequence[Sent], trainable: int, out: Vector) -> None:
    """The gradient of the global batch into the first `trainable` elements, the mean of the float state behind them."""
    if trainable:
        gradient(sent, trainable, out[:trainable])
    if out.size > trainable:
        mean([each.values[len(each.denominators) * trainable :] for each in sent], sent, out[trainable:])


def reduced(plan: ExchangePlan, sent: Sequence[Sent], trainable: int, out: Vector, first: int = 0) -> None:
    """What a server's optimizer steps with: the gradient of the global batch, or the mean update, from `first` on."""
    if plan.send == "gradients":
        gradient(sent, trainable, out, first)
    else:
        mean([each.values[first : first + out.size] for each in sent], sent, out)


def move_state(plan: ExchangePlan, workers: int, sent: Sequence[Sent], state: Vector) -> None:
    """Move the float state, which is not optimised, beside a server's optimizer.

    In a synchronous round it goes to its mean over the workers, or by its mean update; otherwise by 1/workers of the
    way to what the sender has, or of the sender's update.
    """
    if not state.size or not any(each.rows for each in sent):
        return
    values = [each.values[-state.size :] for each in sent]
    weight = 1.0 if plan.synchronous else 1.0 / workers
    if plan.send == "updates":
        subtract_mean(values, sent, state, weight)
    elif plan.synchronous:
        mean(values, sent, state)
    else:
        add_difference(values[0], over_rows(sent[0].rows), state, weight, state)


def gradient(sent: Sequence[Sent], trainable: int, out: Vector, first: int = 0) -> None:
    """The gradient of the global batch: the sum over the parts of all numerators over all denominators.

    `out` gets as many elements of it as it has, from `first` on.
    """
    for part in range(len(sent[0].denominators)):
        start = part * trainable + first
        values = [each.values[start : start + out.size] for each in sent]
        factor = _over([each.denominators[part] for each in sent])
        weighted_sum(values, factor, out, accumulate=part > 0)


def mean(values: Sequence[Vector], sent: Sequence[Sent], out: Vector) -> None:
    """The mean, each worker counted by its rows, of vectors that come times rows."""
    weighted_sum(values, _over([float(each.rows) for each in sent]), out, accumulate=False)


def subtract_mean(values: Sequence[Vector], sent: Sequence[Sent], out: Vector, scale: float = 1.0) -> None:
    """Move `out` against that mean, scaled."""
    weighted_sum(values, -scale * _over([float(each.rows) for each in sent]), out, accumulate=True)


def over_rows(rows: int) -> float:
    """What a vector that came times rows is to be multiplied by."""
    return _over([float(rows)])


def weighted_sum(values: Sequence[Vector], factor: float, out: Vector, *, accumulate: bool) -> None:
    """Set `out` to the sum of the vectors times the factor, or add it to `out`."""
    scratch = np.empty(min(_BLOCK, max(1, out.size)), dtype=out.dtype)
    typed = out.dtype.type(factor)
    for start in range(0, out.size, _BLOCK):
        target = out[start : start + _BLOCK]
        block = scratch[: target.size] if accumulate else target
        np.copyto(block, values[0][start : start + _BLOCK])
        for each in values[1:]:
            np.add(block, each[start : start + _BLOCK], out=block)
        np.multiply(block, typed, out=block)
        if accumulate:
            np.add(target, block, out=target)


def add_difference(values: Vector, factor: float, base: Vector, weight: float, out: Vector) -> None:
    """Add `weight` times (the vector times the factor, minus `base`) to `out`, which may be `base` itself."""
    scratch = np.empty(min(_BLOCK, max(1, out.size)), dtype=out.dtype)
    typed, typed_weight = out.dtype.type(factor), out.dtype.type(weight)
    for start in range(0, out.size, _BLOCK):
        target = out[start : start + _BLOCK]
        block = scratch[: target.size]
        np.multiply(values[start : start + _BLOCK], typed, out=block)
        np.subtract(block, base[start : start + _BLOCK], out=block)
        np.multiply(block, typed_weight, out=block)
        np.add(target, block, out=target)


def squared_norm(vector: Vector) -> float:
    """The sum of the squares, in double precision across blocks."""
    blocks = (vector[start : start + _BLOCK] for start in range(0, vector.size, _BLOCK))
    return sum(float(np.dot(block, block)) for block in blocks)


def _over(denominators: Sequence[float | None]) -> float:
    if denominators[0] is None:
        return 1.0
    total = sum(float(each) for each in denominators if each is not None)
    return 1.0 / total if total else 0.0
