"""Blocks of any size regrouped into batches of one size, so that a model compiles one shape. Runs on workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from keraunos.batch import Array, Arrays
from keraunos.errors import JobError


def regroup(blocks: Iterable[Arrays], batch_size: int) -> Iterator[Arrays]:
    """Yields the same rows in the same order as arrays of `batch_size` rows; the last may be shorter.

    A block is read only when its rows are needed, and a batch is given as soon as it is full. A batch that lies
    within one block is a view of it, which may be read-only; others are copies.
    """
    if batch_size < 1:
        raise JobError(f"`batchSize` must be a whole number of at least 1. Received: {batch_size!r}.")
    pieces: list[Arrays] = []
    held = 0
    for block in blocks:
        rows = arrays_rows(block)
        start = 0
        while start < rows:
            stop = min(rows, start + batch_size - held)
            pieces.append(_slice(block, start, stop))
            held += stop - start
            start = stop
            if held == batch_size:
                yield _joined(pieces)
                pieces, held = [], 0
    if pieces:
        yield _joined(pieces)


def arrays_rows(arrays: Arrays) -> int:
    """Returns the number of rows of one array, or of a dict of them."""
    return len(next(iter(arrays.values()))) if isinstance(arrays, dict) else len(arrays)


def padded(arrays: Arrays, rows: int) -> Arrays:
    """Returns the same rows and, behind them, the last one again, up to that many.

    A model is known to accept the last row; zeros might be outside of what a lookup has.
    """
    if isinstance(arrays, dict):
        return {name: _pad(array, rows) for name, array in arrays.items()}
    return _pad(arrays, rows)


def first_rows(arrays: Arrays, rows: int) -> Arrays:
    """Returns the first rows of one array, or of each of a dict of them."""
    return _slice(arrays, 0, rows)


def _pad(array: Array, rows: int) -> Array:
    if len(array) >= rows:
        return array
    return np.concatenate([array, np.repeat(array[-1:], rows - len(array), axis=0)])


def _slice(arrays: Arrays, start: int, stop: int) -> Arrays:
    if isinstance(arrays, dict):
        return {name: array[start:stop] for name, array in arrays.items()}
    return arrays[start:stop]


def _joined(pieces: list[Arrays]) -> Arrays:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    if isinstance(first, dict):
        return {name: _concatenated(piece[name] for piece in pieces if isinstance(piece, dict)) for name in first}
    return _concatenated(piece for piece in pieces if not isinstance(piece, dict))


def _concatenated(arrays: Iterable[Array]) -> Array:
    pieces = list(arrays)
    longest = max(array.shape[1:2] for array in pieces)
    # Only rows that are padded come in different lengths, each with those of its own block.
    joined: Array = np.concatenate([_lengthened(array, *longest) if longest else array for array in pieces])
    return joined


def _lengthened(array: Array, length: int) -> Array:
    missing = length - array.shape[1]
    return np.pad(array, [(0, 0), (0, missing), *[(0, 0)] * (array.ndim - 2)]) if missing else array
