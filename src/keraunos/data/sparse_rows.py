"""Sparse rows in compressed form, dense only once a batch is formed. Runs on workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SparseRows:
    """Rows of one width of which only some elements are kept; all others are zero.

    Row i holds `values[indptr[i]:indptr[i + 1]]` at the positions `indices[indptr[i]:indptr[i + 1]]`.
    """

    indptr: Positions
    indices: Array
    values: Array
    width: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def dense(self) -> Array:
        """Returns all rows as one array."""
        return _scattered(self.indices, self.values, np.diff(self.indptr), self.width)

    def take(self, rows: Positions) -> Array:
        """Returns the rows at these positions as one array."""
        starts = self.indptr[rows]
        lengths = self.indptr[rows + 1] - starts
        ends = np.cumsum(lengths)
        source = np.repeat(starts - (ends - lengths), lengths)
        source += np.arange(len(source))
        return _scattered(self.indices.take(source), self.values.take(source), lengths, self.width)


def _scattered(indices: Array, values: Array, lengths: Positions, width: int) -> Array:
    out = np.zeros((len(lengths), width), dtype=values.dtype)
    target = np.repeat(np.arange(0, out.size, width) if width else lengths, lengths)
    target += indices
    out.reshape(-1)[target] = values
    return out


Block = Array | SparseRows


def row_count(block: Block) -> int:
    """Returns the number of rows of a block, dense or sparse."""
    return block.rows if isinstance(block, SparseRows) else len(block)


def as_dense(block: Block) -> Array:
    """Returns the block as one array."""
    return block.dense() if isinstance(block, SparseRows) else block
