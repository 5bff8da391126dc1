"""Checks that class labels are within the model's range. Runs on workers, as rows arrive."""

from __future__ import annotations

import numpy as np

from keraunos.data.sparse_rows import Block, as_dense
from keraunos.errors import DataError
from keraunos.job.columns import Slot


def check_classes(slot: Slot, block: Block, first_row: int) -> None:
    """Raises `DataError` if a label is not a whole number from 0 to the slot's number of classes minus 1."""
    if slot.classes is None:
        return
    labels = as_dense(block)
    with np.errstate(invalid="ignore"):
        wrong = ~((labels >= 0) & (labels < slot.classes) & (np.floor(labels) == labels))
    if wrong.any():
        row = int(np.flatnonzero(wrong.reshape(len(labels), -1).any(axis=1))[0])
        example = labels[row][wrong[row]].flat[0] if labels.ndim > 1 else labels[row]
        raise DataError(
            f"Column {slot.columns[0]!r}{_use(slot)} holds a label that is out of range for the loss: the model has "
            f"{slot.classes} classes, so labels must be whole numbers from 0 to {slot.classes - 1}. Received: "
            f"{example.item()!r} in row {first_row + row}. Index the labels first (spark.ml's StringIndexer does), or "
            "give the model more outputs."
        )


def _use(slot: Slot) -> str:
    return "" if slot.name is None else f", which is for {slot.name!r},"
