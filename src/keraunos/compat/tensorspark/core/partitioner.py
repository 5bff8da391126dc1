"""A partitioner that spreads rows at random. Runs on the driver and, inside `partitionBy`, on executors."""

from __future__ import annotations

import random
import secrets
from typing import Any

from pyspark import TaskContext


class RandomPartitioner:
    """A partition at random for each row, whatever its key: `rdd.partitionBy(n, RandomPartitioner(n))`.

    Within a task the numbers are a fixed sequence, so that Spark, where it has to compute a lost partition again,
    sends each row to where it went before. No two of them are equal, because Spark takes RDDs with equal
    partitioners for aligned: it would join the wrong rows, and leave out a shuffle. So take a new one for each shuffle.

    Args:
        num_partition: how many partitions there are.
        seed: makes the choice repeatable; left out, each partitioner has its own.
    """

    def __init__(self, num_partition: int, seed: int | None = None) -> None:
        self.num_partition = num_partition
        self._seed = secrets.randbits(32) if seed is None else seed
        self._random = random.Random(self._seed)
        self._attempt: int | None = None

    def __call__(self, k: Any) -> int:
        """Returns the partition of the next row."""
        task = TaskContext.get()
        if task is not None and task.taskAttemptId() != self._attempt:
            self._attempt = task.taskAttemptId()
            self._random = random.Random(f"{self._seed} {task.partitionId()}")
        return self._random.randrange(self.num_partition)
