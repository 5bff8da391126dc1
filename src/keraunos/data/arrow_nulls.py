"""Which rows of an Arrow column hold a null, at any depth. Runs on workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from keraunos.data.arrow_types import is_image, is_list, is_vector

Mask = npt.NDArray[np.bool_]


def null_rows(array: Any) -> Mask | None:
    """Returns a mask of the rows that are or contain a null.

    Returns `None`, at almost no cost, if there is none.
    """
    own: Mask | None = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if is_vector(array.type):
        return _either(own, null_rows(array.field("values")))
    if is_image(array.type):
        return _either(own, null_rows(array.field("data")))
    if is_list(array.type):
        return _either(own, _null_inside(array))
    return own


def _null_inside(array: Any) -> Mask | None:
    # `flatten` omits the values under null rows, and so do the lengths once their nulls are zero.
    inner = null_rows(array.flatten())
    if inner is None:
        return None
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths)
    before = np.concatenate([[0], np.cumsum(inner)])
    inside: Mask = before[ends] > before[ends - lengths]
    return inside


def _either(first: Mask | None, second: Mask | None) -> Mask | None:
    if first is None or second is None:
        return second if first is None else first
    return first | second
