"""Which rows of a block hold NaN or an infinite value. Runs on workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array
from keraunos.data.sparse_rows import Block, SparseRows, row_count

Mask = npt.NDArray[np.bool_]


def odd_rows(block: Block) -> Mask | None:
    """Returns a mask of the rows that hold a value that is not finite; `None`, after one pass, if none does."""
    values = block.values if isinstance(block, SparseRows) else block
    if values.dtype.kind != "f" or not values.size or _is_finite(values):
        return None
    odd: Mask = np.logical_not(np.isfinite(values))
    if not odd.any():
        return None
    if not isinstance(block, SparseRows):
        dense: Mask = np.any(odd.reshape(len(block), -1), axis=1)
        return dense
    rows: Mask = np.zeros(row_count(block), dtype=np.bool_)
    rows[np.searchsorted(block.indptr, np.flatnonzero(odd), side="right") - 1] = True
    return rows


def first_odd(value: Any, dtype: np.dtype[Any]) -> float:
    """Of a row as Python has it, the first number that is not finite in the type that the model gets."""
    numbers = np.asarray(value["values"] if isinstance(value, dict) else value, dtype=np.float64).reshape(-1)
    with np.errstate(over="ignore"):
        return float(numbers[np.argmax(~np.isfinite(numbers.astype(dtype)))])


def what_is_odd(value: float, dtype: np.dtype[Any]) -> str:
    """Returns the description of such a number for a message."""
    if np.isnan(value):
        return "NaN"
    return "an infinite value" if np.isinf(value) else f"a value that is infinite as {dtype.name}"


def _is_finite(values: Array) -> bool:
    # A sum is finite only if every element is, and needs no temporary array; large numbers may overflow it.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))
