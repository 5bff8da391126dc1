"""Measures of a TensorFlow graph that compare what it gives with labels, beside its scalars. Runs on both sides.

A measure gives the state of a batch, an array. The states of any batches, from any worker, add up, and the result is
computed once, from their sum. Measures travel among a fit's custom objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

MEASURES = "keraunos graph measures"
# What a graph's archive calls the two tensors that are compared.
OUTPUT, LABEL = "output", "label"

Sums = npt.NDArray[np.float64]


class Measure(Protocol):
    """A number that says how good outputs are, given labels."""

    def state(self, output: Any, label: Any) -> Sums:
        """What a batch adds."""

    def result(self, state: Sums) -> float:
        """The number, for the sum of the states of all batches."""


def as_custom_objects(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Measures by the names of their results, as custom objects of a fit."""
    return {MEASURES: dict(measures)} if measures else {}


def measures_in(custom_objects: Mapping[str, Any] | None) -> dict[str, Measure]:
    """The measures among a fit's custom objects."""
    found: dict[str, Measure] = (custom_objects or {}).get(MEASURES, {})
    return found


def no_state() -> Sums:
    """The state over no rows, which adds nothing to any other."""
    return np.zeros(0)


def summed(states: Sequence[Sums]) -> Sums:
    """The state of all of them together."""
    given = [np.asarray(state, np.float64) for state in states if len(state)]
    return np.sum(np.stack(given), axis=0) if given else no_state()
