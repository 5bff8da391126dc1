"""Labels that are classes: which there are, and rows that do not count. Runs on the driver, executors and workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from keraunos.errors import DataError


@dataclass(frozen=True)
class Classes:
    """The labels that a loss takes.

    Attributes:
        first: the first class, 0 or 1.
        count: how many there are.
        padding: the label of rows that do not count.
    """

    first: int
    count: int
    padding: int

    def check(self, labels: Any) -> None:
        """Raise an error if a label is no class."""
        values = np.asarray(labels)
        known = (values >= self.first) & (values < self.first + self.count) & (values % 1 == 0)
        wrong = values[~(known | (values == self.padding))]
        if wrong.size:
            raise DataError(
                f"A label must be a class from {self.first} to {self.first + self.count - 1}, or {self.padding} for a "
                f"row that does not count. Received: {wrong.flat[0].item()!r}. Count classes from {self.first}, and "
                "give the model an output for each."
            )

    def checked(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Records whose last entry, the label, is a class."""
        for record in records:
            self.check(record[-1])
            yield record

    def counted(self, losses: Any, labels: Any) -> Any:
        """Returns the losses of rows, of which only those that count are in a mean.

        Not a number if a label is no class.
        """
        from keras import ops
        from keras.src.backend.common.masking import set_keras_mask

        counts = labels != self.padding
        known = ops.logical_and(labels >= self.first, labels < self.first + self.count)
        found = ops.where(ops.logical_and(counts, ops.logical_not(known)), float("nan"), losses)
        set_keras_mask(found, counts)
        return found
