"""Checks that rows have the shape of the model's input. Runs on workers, as rows arrive."""

from __future__ import annotations

from keraunos.batch import fits
from keraunos.data.sparse_rows import Block, SparseRows
from keraunos.errors import DataError
from keraunos.job.columns import Slot


def check_shape(slot: Slot, block: Block, first_row: int) -> None:
    """Raise an error if the rows of a block do not fit the shape of its slot."""
    if slot.shape is None:
        return
    shape = (block.width,) if isinstance(block, SparseRows) else block.shape[1:]
    if not fits(shape, slot.shape):
        advice = "read the images with another `size`" if slot.kind == "image" else "other columns to `featuresCol`"
        raise DataError(
            f"Column {', '.join(map(repr, slot.columns))} does not fit the model. Expected rows of shape "
            f"{_told(slot.shape)}. Received: rows of shape {_told(shape)}, as in row {first_row}. Give the model "
            f"inputs of that shape, or {advice}."
        )


def _told(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if each is None else str(each) for each in shape)}{',' if len(shape) == 1 else ''})"
