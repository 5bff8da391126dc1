"""What turns contributions into new parameters. Runs where the server runs.

Contributions are always added up in the order of their ranks, never in the order of their arrival, so that a
synchronous run gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keraunos.parameters import Layout, Vector

# Sums run block by block so that what is added stays in the processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Sent:
    """One worker's complete contribution to a round: numerators, what each is to be divided by, and its rows."""

    values: Vector
    denominators: tuple[float | None, ...]
    rows: int


def contribution_length(send: str, layout: Layout, parts: int) -> int:
    """How long a contribution's vector is: `parts` gradients and the float state, or one update of everything."""
    return layout.trainable_size * parts + layout.state_size if send == "gradients" else layout.size


def mean_gradient(sent: Sequence[Sent], layout: Layout, out: Vector) -> None:
    """The gradient of the global batch, and the mean of the float state, from contributions in rank order."""
    trainable = layout.trainable_size
    parts = len(sent[0].denominators)
    for part in range(parts):
        values = [each.values[part * trainable : (part + 1) * trainable] for each in sent]
        denominators = [each.denominators[part] for each in sent]
        _weighted_sum(values, _factor(denominators), out[:trainable], accumulate=part > 0)
    state = [each.values[parts * trainable :] for each in sent]
    _weighted_sum(state, _factor([float(each.rows) for each in sent]), out[trainable:], accumulate=False)


def mean_update(sent: Sequence[Sent], parameters: Vector) -> None:
    """Move the parameters by the mean update, each counted by its rows, from contributions in rank order."""
    factor = _factor([float(each.rows) for each in sent])
    _weighted_sum([each.values for each in sent], -factor, parameters, accumulate=True)


def add_update(sent: Sent, scale: float, parameters: Vector) -> None:
    """Move the parameters by one worker's update, scaled."""
    _weighted_sum([sent.values], -scale * _factor([float(sent.rows)]), parameters, accumulate=True)


def _factor(denominators: Sequence[float | None]) -> float:
    if denominators[0] is None:
        return 1.0
    total = sum(float(each) for each in denominators if each is not None)
    return 1.0 / total if total else 0.0


def _weighted_sum(values: Sequence[Vector], factor: float, out: Vector, *, accumulate: bool) -> None:
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
