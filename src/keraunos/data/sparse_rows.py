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
        """All rows as one array."""
        out = np.zeros((self.rows, self.width), dtype=self.values.dtype)
        starts = np.repeat(np.arange(self.rows) * self.width, np.diff(self.indptr))
        out.reshape(-1)[starts + self.indices] = self.values
        return out

    def take(self, rows: Positions) -> Array:
        """The rows at these positions as one array."""
        return self._some(rows).dense()

    def _some(self, rows: Positions) -> SparseRows:
        starts = self.indptr[rows]
        lengths = self.indptr[rows + 1] - starts
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        source = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(indptr, self.indices[source], self.values[source], self.width)


Block = Array | SparseRows


def row_count(block: Block) -> int:
    """The number of rows of a block, dense or sparse."""
    return block.rows if isinstance(block, SparseRows) else len(block)


def as_dense(block: Block) -> Array:
    """The block as one array."""
    return block.dense() if isinstance(block, SparseRows) else block
