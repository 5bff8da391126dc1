"""Each iteration's loss on each partition, as the driver hears of it. Runs on the driver."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keraunos.job.schedule import Schedule
from keraunos.launch.hooks import Hooks

LossCallback = Callable[[float, int, int], object]


class IterationLosses(Hooks):
    """Tells the loss of every iteration: its mean over the rows of the iteration's batches.

    SparkFlow made one more pass over the partition for it; here it is what the steps themselves found. Iterations of a
    partition are reported in their order, those of different partitions as they arrive.
    """

    def __init__(self, schedule: Schedule, workers: int, listeners: Sequence[LossCallback]) -> None:
        self._schedule = schedule
        self._workers = workers
        self._listeners = listeners
        self._steps: dict[int, int] = {}
        self._sums: dict[int, _Sum] = defaultdict(_Sum)

    def on_ready(self, rank: int, rows: int) -> None:
        """A worker has its rows, and so its number of steps."""
        self._steps[rank] = self._schedule.steps_of(rows, rank, self._workers)

    def on_losses(
        self, rank: int, first_step: int, losses: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
    ) -> None:
        """Record steps that were taken; report the iterations that they complete."""
        found = self._sums[rank]
        for step, loss, count in zip(itertools.count(first_step), losses.tolist(), rows.tolist(), strict=False):
            iteration, place = divmod(step, self._steps[rank])
            if place == 0:
                found.total = found.rows = 0.0
            found.total += loss * count
            found.rows += count
            # A worker that was lost and restarted repeats some steps.
            if place == self._steps[rank] - 1 and iteration > found.told:
                found.told = iteration
                for listener in self._listeners:
                    listener(found.total / found.rows, iteration, rank)


@dataclass
class _Sum:
    """The losses of an iteration's steps so far, times their rows; and the iteration that was reported last."""

    total: float = 0.0
    rows: float = 0.0
    told: int = -1


def print_loss(loss: float, iteration: int, partition_id: int) -> None:
    """Write a line as SparkFlow does with `verbose`."""
    sys.stdout.write(f"Partition Id: {partition_id}, Iteration: {iteration}, Loss: {loss:f}\n")
    sys.stdout.flush()
