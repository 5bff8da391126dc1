"""Batches for the small models of the learner suite, and the sum of several workers' contributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.batch import Array, Batch
from keraunos.learners.learner import Contribution
from keraunos.parameters import Layout, Vector

FEATURES = 6
CLASSES = 3


def rows(count: int, seed: int = 0) -> Batch:
    """Returns rows of `FEATURES` random numbers, each with one of `CLASSES` classes."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(count, FEATURES)).astype("float32")
    return Batch(inputs, generator.integers(0, CLASSES, count), None, count)


def binary_rows(count: int, seed: int = 0) -> Batch:
    """Returns rows of random numbers, labelled by the sign of their sum."""
    inputs: Any = rows(count, seed).inputs
    return Batch(inputs, (inputs.sum(axis=1) > 0).astype("int64"), None, count)


def joined(batches: Sequence[Batch]) -> Batch:
    """Returns the rows of all batches as one batch."""
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return Batch(
        _join([batch.inputs for batch in batches]),
        _join([batch.targets for batch in batches]),
        np.concatenate(weights) if weights else None,
        sum(batch.rows for batch in batches),
    )


def slices(batch: Batch, size: int) -> list[Batch]:
    """Returns the rows of a batch without weights, in batches of at most `size`."""
    inputs: Any = batch.inputs
    targets: Any = batch.targets
    starts = range(0, batch.rows, size)
    return [Batch(inputs[i : i + size], targets[i : i + size], None, len(inputs[i : i + size])) for i in starts]


def reduced(contributions: Sequence[Contribution], layout: Layout) -> Vector:
    """Returns the vector that the docstring of `Contribution` describes, computed in float64."""
    size = layout.trainable_size
    count = sum(contribution.rows for contribution in contributions)
    total = np.sum([np.asarray(contribution.values, np.float64) for contribution in contributions], axis=0)
    vector = np.zeros(layout.size)
    parts = len(contributions[0].denominators)
    for part in range(parts):
        numerator = total[part * size : (part + 1) * size]
        denominators = [contribution.denominators[part] for contribution in contributions]
        divisor = 1.0 if denominators[0] is None else sum(each for each in denominators if each is not None)
        if divisor:
            vector[:size] += numerator / divisor
    vector[size:] = total[parts * size :] / count
    return vector.astype(layout.dtype)


def kept(contribution: Contribution) -> Contribution:
    """Returns a copy of a contribution that remains valid after the learner's next call."""
    return Contribution(np.array(contribution.values), contribution.denominators, contribution.rows)


def assert_close(vector: Vector, expected: Vector, limit: float = 2e-5) -> None:
    """Fail if two vectors differ by more than `limit`, relative to the expected one's norm."""
    difference = np.linalg.norm(vector - expected) / np.linalg.norm(expected)
    assert difference < limit, difference


def assert_states_equal(state: Sequence[Array], expected: Sequence[Array]) -> None:
    """Fail if two lists of arrays differ."""
    assert len(state) == len(expected)
    for value, other in zip(state, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


def _join(values: Sequence[Any]) -> Any:
    if isinstance(values[0], dict):
        return {name: np.concatenate([value[name] for value in values]) for name in values[0]}
    return np.concatenate(values)
