"""The average of a parameter over its last updates (`average_window`). Runs where the parameters live.

There are two sums: of the open window, and of the previous one. After every update the open window takes the
parameters in; it closes when it is as long as `average_window` times all updates or as `max_average_window`, but not
before it has 10,000 updates, or that maximum, or as many as there were when a pass ended. It then becomes the one
before. The average is over both, so that it spans between one and two windows. If no maximum was given it is the
number of updates of the last pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.parameters import Vector

SHORTEST_WINDOW = 10_000
_UNLIMITED = 2**63 - 1


class Average:
    """The average of one slice's trained parameters."""

    def __init__(self, opt: OptimizationConfig, size: int) -> None:
        self._window = opt.average_window
        self._by_pass = opt.max_average_window is None
        self._most = opt.max_average_window or _UNLIMITED
        self._least = min(SHORTEST_WINDOW, self._most)
        self._open = np.zeros(size, np.float64)
        self._before = np.zeros(size, np.float64)
        self._open_length = self._before_length = self._updates = 0
        self._pass = self._updates_before_pass = 0

    def add(self, parameters: Vector, passes: int) -> None:
        """Take in the parameters after an update of that pass."""
        if passes > self._pass and self._updates:
            if self._by_pass:
                self._most = max(1, self._updates - self._updates_before_pass)
            self._least = min(self._least, self._updates)
            self._updates_before_pass, self._pass = self._updates, passes
        np.add(self._open, parameters, out=self._open)
        self._updates += 1
        self._open_length += 1
        if self._open_length >= self._least and self._open_length >= min(self._most, self._updates * self._window):
            self._before, self._open = self._open, self._before
            self._open.fill(0.0)
            self._before_length, self._open_length = self._open_length, 0

    def put(self, parameters: Vector) -> None:
        """Put the average in place of the parameters; without an update they stay."""
        length = self._open_length + self._before_length
        if length:
            np.copyto(parameters, (self._open + self._before) / length, casting="same_kind")

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the state for `restore`."""
        numbers = (
            self._open_length,
            self._before_length,
            self._updates,
            self._pass,
            self._updates_before_pass,
            self._most,
            self._least,
        )
        return [self._open.copy(), self._before.copy(), np.array(numbers, np.int64)]

    def restore(self, state: Sequence[npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        np.copyto(self._open, state[0])
        np.copyto(self._before, state[1])
        (
            self._open_length,
            self._before_length,
            self._updates,
            self._pass,
            self._updates_before_pass,
            self._most,
            self._least,
        ) = (int(each) for each in state[2])
