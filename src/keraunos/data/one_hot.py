"""Class numbers as one-hot rows. Runs on workers, as rows arrive."""

from __future__ import annotations

import numpy as np

from keraunos.data.sparse_rows import Block, SparseRows, as_dense
from keraunos.errors import DataError
from keraunos.job.columns import Slot

# Up to this size, storing the zeros costs less than building one-hot rows per batch.
_DENSE_CLASSES = 64


def one_hot_rows(slot: Slot, block: Block) -> Block:
    """Returns a row for each class number, which `check_classes` has checked: zeros, and a one at its position."""
    labels = as_dense(block)
    if labels.shape[1:] not in ((), (1,)):
        raise DataError(
            f"Column {slot.columns[0]!r} must hold one class number a row. Received: rows of shape {labels.shape[1:]}. "
            "Labels that are one-hot already are taken as they are."
        )
    classes = slot.classes or 0
    numbers = labels.reshape(-1).astype(np.int32)
    if classes > _DENSE_CLASSES:
        return SparseRows(np.arange(len(numbers) + 1), numbers, np.ones(len(numbers), dtype=np.float32), classes)
    rows = np.zeros((len(numbers), classes), dtype=np.float32)
    rows[np.arange(len(numbers)), numbers] = 1.0
    return rows
