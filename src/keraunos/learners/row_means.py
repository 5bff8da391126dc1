"""Means over rows as the state of metrics, for learners without metrics of a framework. Runs on the driver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from keraunos.learners.graph_measures import Measure, summed
from keraunos.learners.home_model import State


class RowMeans:
    """Means over rows, as the first array of a state: for each name the sum of value times rows, and the rows.

    The first name is the loss's; a graph that steps without telling its loss leaves that place empty. Behind it lie the
    states of measures, an array each.
    """

    def __init__(
        self, names: Sequence[str], *, has_loss: bool = True, measures: Mapping[str, Measure] | None = None
    ) -> None:
        self._names = tuple(names)
        self._first = 0 if has_loss else 1
        self._measures = dict(measures or {})

    def merge(self, states: Sequence[State]) -> list[npt.NDArray[np.float64]]:
        """The sum of all states."""
        total = np.zeros(2 * len(self._names))
        for state in states:
            total += np.asarray(state[0], np.float64)
        return [total, *(summed([state[place] for state in states]) for place in range(1, 1 + len(self._measures)))]

    def read(self, states: Sequence[State]) -> dict[str, float]:
        """The results by name, means first; a mean over no rows at all is not a number."""
        if not states:
            return {}
        total, *measured = self.merge(states)
        sums, rows = total[0::2].tolist(), total[1::2].tolist()
        named = list(zip(self._names, sums, rows, strict=True))[self._first :]
        means = {name: value / count if count else math.nan for name, value, count in named}
        found = zip(self._measures.items(), measured, strict=True)
        # In training nothing is compared.
        return means | {name: measure.result(state) for (name, measure), state in found if len(state)}
