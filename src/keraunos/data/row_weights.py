"""The weight of each row, from the weight column and the class weights. Runs on workers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array
from keraunos.data.sparse_rows import Block, SparseRows
from keraunos.errors import ColumnError, DataError

Weights = npt.NDArray[np.float32]


def row_weights(column: str, block: Block, first_row: int) -> Weights:
    """Returns a weight column as float32; a negative, infinite or NaN weight raises."""
    if isinstance(block, SparseRows) or block.ndim != 1:
        raise ColumnError(f"`weightCol` must be a column of single numbers. Received: arrays in column {column!r}.")
    with np.errstate(over="ignore"):
        weights: Weights = block.astype(np.float32)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"Column {column!r} holds a weight that no row can have; expected a finite number of at least 0. "
            f"Received: {block[row].item()!r} in row {first_row + row}. Correct or drop such rows."
        )
    return weights


def is_validation(column: str, block: Block) -> npt.NDArray[np.bool_]:
    """Returns a validation indicator column as booleans: true, or any number but 0, for a validation row."""
    if isinstance(block, SparseRows) or block.ndim != 1 or block.dtype.kind not in "biu":
        found = "vectors" if isinstance(block, SparseRows) else f"{block.dtype.name} of shape {block.shape[1:]}"
        raise ColumnError(
            f"`validationIndicatorCol` must be a column of booleans or whole numbers. "
            f"Received: {found} in column {column!r}."
        )
    return block.astype(np.bool_)


def class_factors(column: str, labels: Array, class_weight: Mapping[int, float], first_row: int) -> Weights:
    """Returns the weight of each row's class; a class without one weighs 1.

    One-hot rows are read as their largest element.
    """
    classes = _classes(column, labels, first_row)
    known = np.array(sorted(class_weight), dtype=np.int64)
    weights = np.array([class_weight[label] for label in known.tolist()], dtype=np.float32)
    nearest = np.minimum(np.searchsorted(known, classes), len(known) - 1)
    factors: Weights = np.where(known[nearest] == classes, weights[nearest], np.float32(1))
    return factors


def _classes(column: str, labels: Array, first_row: int) -> npt.NDArray[np.int64]:
    if labels.ndim > 2:
        raise ColumnError(
            f"`classWeight` needs labels that are whole numbers, or one-hot rows. "
            f"Received: labels of shape {labels.shape[1:]} in column {column!r}."
        )
    if labels.ndim == 2 and labels.shape[1] > 1:
        largest: npt.NDArray[np.int64] = labels.argmax(axis=1)
        return largest
    flat = labels.reshape(-1)
    with np.errstate(invalid="ignore"):
        classes: npt.NDArray[np.int64] = flat.astype(np.int64)
    wrong = np.flatnonzero(classes != flat)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"`classWeight` needs labels that are whole numbers, or one-hot rows. "
            f"Received: {flat[row].item()!r} in row {first_row + row} of column {column!r}."
        )
    return classes
