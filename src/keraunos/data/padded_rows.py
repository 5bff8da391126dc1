"""Arrays of different lengths as rows of one, with zeros at the end. Runs on workers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc

from keraunos.batch import Array
from keraunos.data.arrow_types import excerpt, is_list
from keraunos.data.sparse_rows import Positions
from keraunos.errors import DataError
from keraunos.job.columns import Slot


def padded_rows(slot: Slot, array: Any, numbers: Callable[[Any], Array], number: Callable[[int], int]) -> Array:
    """Returns one row for each array of the column: cut to `slot.cut`, and filled with zeros up to `slot.length`.

    As `keras.utils.pad_sequences(padding="post", truncating="post")` does it. `numbers` turns a flat Arrow array into
    numpy's, and `number` a row of this batch into one of the whole stream.
    """
    lengths: Positions = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
    kept = lengths if slot.cut is None else np.minimum(lengths, slot.cut)
    target = slot.length or 0
    if len(kept) and int(kept.max()) > target:
        if not slot.grows:
            row = int(np.argmax(kept > target))
            raise DataError(
                f"Column {slot.columns[0]!r} holds an array that is longer than the model's input. Expected at most "
                f"{target} elements. Received: {lengths[row]} in row {number(row)}: {excerpt(array, row)}. Set "
                f"maxLength={target} to cut such arrays, or give the model a longer Input."
            )
        target = int(kept.max())
    ends = np.cumsum(lengths)
    elements = _elements(slot, array, numbers, number, ends)
    places = np.arange(len(elements)) - np.repeat(ends - lengths, lengths)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    inside = places < np.repeat(kept, lengths)
    padded = np.zeros((len(lengths), target, *elements.shape[1:]), dtype=elements.dtype)
    padded[rows[inside], places[inside]] = elements[inside]
    return padded


def _elements(
    slot: Slot, array: Any, numbers: Callable[[Any], Array], number: Callable[[int], int], ends: Positions
) -> Array:
    """Returns the elements of all arrays behind each other; if they are arrays themselves, all have one shape."""
    flat = array.flatten()
    shape = [len(flat)]
    while is_list(flat.type):
        lengths = pc.list_value_length(flat).to_numpy(zero_copy_only=False)
        known = slot.shape[len(shape)] if slot.shape is not None and len(slot.shape) > len(shape) else None
        expected = known if known is not None else int(lengths[0]) if len(lengths) else 0
        wrong = np.flatnonzero(lengths != expected)
        if len(wrong):
            element = int(wrong[0]) // math.prod(shape[1:])
            row = int(np.searchsorted(ends, element, side="right"))
            raise DataError(
                f"Column {slot.columns[0]!r} is ragged below the first dimension, which alone is padded. Expected "
                f"arrays of length {expected} at depth {len(shape) + 1}. Received: length {lengths[wrong[0]]} in row "
                f"{number(row)}: {excerpt(array, row)}. Pad or cut them to one shape."
            )
        shape.append(expected)
        flat = flat.flatten()
    return numbers(flat).reshape(shape)
