"""Checks that ids are within an Embedding's range, and whole numbers within the input's type. Runs on workers.

Frameworks do not check this: on JAX a negative id counts from the end, a large one returns NaN, and a number that is
too large for its type becomes another number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array
from keraunos.data.sparse_rows import Block, Positions, as_dense
from keraunos.errors import DataError
from keraunos.job.columns import Slot
from keraunos.job.id_range import IdRange


def check_ids(slot: Slot, block: Block, first_row: int, kept: Positions | None = None) -> None:
    """Raise an error if a number is outside of what the model's input, or an Embedding behind it, takes.

    Rows are counted from `first_row`; if some were omitted, `kept` says which ones the block contains.
    """
    if slot.kind != "number" or (slot.dtype is None and not slot.ids):
        return
    rows = as_dense(block)
    if not rows.size:
        return
    flat = rows.reshape(len(rows), -1)
    _check_type(_CheckedRows(slot, flat, first_row, kept))
    for ids in slot.ids:
        _check_range(_CheckedRows(slot, flat, first_row, kept), ids)


class _CheckedRows:
    def __init__(self, slot: Slot, flat: Array, first_row: int, kept: Positions | None) -> None:
        self.slot = slot
        self.flat = flat
        self._first_row = first_row
        self._kept = kept

    def positions(self, ids: IdRange) -> Positions:
        """Returns the positions of the ids in each row."""
        width = self.flat.shape[1]
        own = np.asarray(ids.positions, dtype=np.int64)
        if ids.period:
            own = (np.arange(0, width, ids.period)[:, None] + own).reshape(-1)
        inside: Positions = own[own < width]
        return inside

    def first(self, wrong: npt.NDArray[np.bool_], positions: Positions) -> tuple[str, str]:
        """Returns the column of the first wrong number, with what it is for, and what was received."""
        row = int(np.argmax(wrong.any(axis=1)))
        position = int(positions[np.argmax(wrong[row])])
        slot = self.slot
        name = slot.columns[position] if slot.stacked else slot.columns[0]
        use = "" if slot.name is None else f", which is for {slot.name!r},"
        number = self._first_row + (row if self._kept is None else int(self._kept[row]))
        value = self.flat[row, position].item()
        return f"Column {name!r}{use}", f"Received: {value!r} in row {number}."


def _check_type(rows: _CheckedRows) -> None:
    """Raises an error if whole numbers do not fit the input's integer type."""
    flat, dtype = rows.flat, rows.slot.dtype or ""
    if flat.dtype.kind not in "iu" or "int" not in dtype:
        return
    least, most = _bounds(dtype)
    if int(flat.min()) >= least and int(flat.max()) <= most:
        return
    column, received = rows.first((flat < least) | (flat > most), np.arange(flat.shape[1]))
    raise DataError(
        f"{column} holds a number that the model's input cannot represent: it is read as {dtype}, from {least} to "
        f"{most}. {received} Give the model an Input of a larger type (on JAX int64 is int32), or index the values."
    )


def _check_range(rows: _CheckedRows, ids: IdRange) -> None:
    positions = rows.positions(ids)
    every = len(positions) == rows.flat.shape[1]
    found = rows.flat if every else rows.flat[:, positions]
    if not found.size:
        return
    with np.errstate(invalid="ignore"):
        wrong = ~((found >= 0) & (found < ids.size))
        if found.dtype.kind == "f":
            wrong |= np.floor(found) != found
    if wrong.any():
        column, received = rows.first(wrong, positions)
        raise DataError(
            f"{column} holds an id that is out of range for the Embedding {ids.layer!r}: it has {ids.size} rows, so "
            f"ids must be whole numbers from 0 to {ids.size - 1}. {received} Index the ids first (spark.ml's "
            "StringIndexer does), or give the Embedding a larger `input_dim`."
        )
    floats = _float_type(found, rows.slot.dtype)
    if floats is not None:
        most = 1 << (np.finfo(floats).nmant + 1)
        if (large := found > most).any():
            column, received = rows.first(large, positions)
            raise DataError(
                f"{column} holds an id that {floats} cannot hold exactly: that has every whole number up to {most} "
                f"only. {received} Use a column of whole numbers, and give the model an Input with dtype='int32'."
            )


def _float_type(found: Array, dtype: str | None) -> str | None:
    """Returns the float type to which the ids are converted before the Embedding."""
    if found.dtype.kind == "f":
        return str(found.dtype.name)
    return dtype if dtype in {"float16", "float32", "float64"} else None


def _bounds(dtype: str) -> tuple[int, int]:
    info: Any = np.iinfo(dtype)
    return int(info.min), int(info.max)
