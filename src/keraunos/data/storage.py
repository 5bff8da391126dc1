"""Stores rows in memory up to a budget, and in memory-mapped files beyond it. Runs on workers.

Rows are appended block by block; the result is one contiguous array per store. The files are unlinked when they are
created, so that neither a failure nor a killed worker leaves one behind.
"""

from __future__ import annotations

import math
import mmap
import shutil
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from keraunos.batch import Array
from keraunos.data.sparse_rows import Block, Positions, SparseRows, row_count
from keraunos.errors import ClusterError

_FIRST_SEGMENT = 1 << 18
_LARGEST_SEGMENT = 1 << 26  # above malloc's threshold, so that a freed segment is returned to the system


class Spool:
    """Owns the stores of one shard: counts their bytes, and moves all of them to files once the budget is passed.

    `directory` is the directory of the files; `None` is the system's temporary directory.
    """

    def __init__(self, budget: int, directory: str | None = None) -> None:
        self.budget = budget
        self.directory = directory
        self.spilled = False
        self._bytes = 0
        self._stores: list[RowStore] = []

    def store(self, shape: tuple[int, ...], dtype: Any) -> RowStore:
        """Returns a new, empty store for rows of this shape and type."""
        store = RowStore(self, shape, np.dtype(dtype))
        self._stores.append(store)
        return store

    def reserve(self, nbytes: int) -> None:
        """Reserve this many more bytes, in files if they would exceed the budget."""
        self._bytes += nbytes
        if not self.spilled and self._bytes > self.budget:
            self.spilled = True
            for store in self._stores:
                store.spill()

    def no_room(self, error: OSError) -> str:
        """Returns the message for a file of this spool that cannot be written."""
        directory = self.directory or tempfile.gettempdir()
        try:
            free = f" ({shutil.disk_usage(directory).free} bytes are free)"
        except OSError:
            free = ""
        return (
            f"Rows beyond the memory budget of {self.budget} bytes could not be written to {directory!r}. Expected: a "
            f"directory with room for the rows of this worker, {self._bytes} bytes so far. Received: {error}{free}. "
            "Free some space there, choose another directory (`spark.local.dir`, or SPARK_LOCAL_DIRS on the "
            "executors), raise `memoryBudget`, or use more workers."
        )

    def close(self) -> None:
        """Free all files and unfinished rows; finished arrays remain."""
        for store in self._stores:
            store.close()
        self._stores.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RowStore:
    """Rows of one shape and type, appended in order; made by a `Spool`."""

    def __init__(self, spool: Spool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.rows = 0
        self._spool = spool
        self._shape = shape
        self._dtype = dtype
        self._row_bytes = math.prod(shape) * dtype.itemsize
        self._segments: list[Array] = []
        self._filled = 0  # rows in the last segment
        self._file: Any = None

    def append(self, block: Array) -> None:
        """Copy the rows of `block` to the end."""
        self._spool.reserve(len(block) * self._row_bytes)
        if self._spool.spilled:
            self._write(block)
        else:
            self._copy(block)
        self.rows += len(block)

    def finish(self) -> Array:
        """Returns all rows as one array, which needs neither this store nor its spool any longer."""
        array = self._in_memory() if self._file is None else self._mapped()
        self.close()
        return array

    def spill(self) -> None:
        """Move the rows from memory to a file."""
        for segment in self._drained():
            self._write(segment)

    def close(self) -> None:
        """Free everything."""
        self._segments.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _copy(self, block: Array) -> None:
        start = 0
        while start < len(block):
            if not self._segments or self._filled == len(self._segments[-1]):
                self._segments.append(self._segment(len(block) - start))
                self._filled = 0
            segment = self._segments[-1]
            count = min(len(block) - start, len(segment) - self._filled)
            segment[self._filled : self._filled + count] = block[start : start + count]
            self._filled += count
            start += count

    def _segment(self, rows: int) -> Array:
        # Unused pages of a segment are never touched, and so use no memory.
        doubled = min(_LARGEST_SEGMENT, _FIRST_SEGMENT << len(self._segments))
        capacity = max(rows if not self._segments else 1, doubled // max(1, self._row_bytes))
        return np.empty((capacity, *self._shape), dtype=self._dtype)

    def _drained(self) -> Any:
        self._segments.reverse()
        while self._segments:
            segment = self._segments.pop()
            yield segment if self._segments else segment[: self._filled]

    def _in_memory(self) -> Array:
        if len(self._segments) == 1:
            return self._segments[0][: self._filled]
        array = np.empty((self.rows, *self._shape), dtype=self._dtype)
        start = 0
        for segment in self._drained():
            array[start : start + len(segment)] = segment
            start += len(segment)
        return array

    def _write(self, block: Array) -> None:
        try:
            if self._file is None:
                self._file = _nameless_file(self._spool.directory)
            rest = np.ascontiguousarray(block, dtype=self._dtype).reshape(-1).view(np.uint8).data
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise ClusterError(self._spool.no_room(error)) from error

    def _mapped(self) -> Array:
        if not self.rows * self._row_bytes:
            return np.empty((self.rows, *self._shape), dtype=self._dtype)
        mapping = mmap.mmap(self._file.fileno(), self.rows * self._row_bytes, access=mmap.ACCESS_READ)
        return np.frombuffer(mapping, dtype=self._dtype).reshape(self.rows, *self._shape)


class ColumnStore:
    """The rows of one slot: dense blocks and sparse ones, each stored as it arrived, or values of bytes."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._dense: RowStore | None = None
        self._sparse: _SparseStore | None = None
        self._places: RowStore | None = None
        self._bytes: _BytesStore | None = None

    def append(self, block: Block) -> None:
        """Add the rows of `block` to the end."""
        if isinstance(block, SparseRows):
            if self._sparse is None:
                self._sparse = _SparseStore(self._spool, block)
                self._places = self._spool.store((), np.int64)
                self._place(0, 0 if self._dense is None else self._dense.rows, sparse=False)
            self._place(self._sparse.rows, block.rows, sparse=True)
            self._sparse.append(block)
            return
        if block.dtype.kind == "O":
            self._bytes = self._bytes or _BytesStore(self._spool)
            self._bytes.append(block)
            return
        if self._dense is None:
            self._dense = self._spool.store(block.shape[1:], block.dtype)
        self._place(self._dense.rows, row_count(block), sparse=False)
        self._dense.append(block)

    def finish(self) -> StoredColumn:
        """Returns the column, ready to be gathered from."""
        if self._bytes is not None:
            return self._bytes.finish()
        dense = None if self._dense is None else self._dense.finish()
        if self._sparse is None or self._places is None:
            return StoredNumbers(dense, None, None)
        places = None if dense is None else self._places.finish()
        return StoredNumbers(dense, self._sparse.finish(), places)

    def _place(self, first: int, count: int, *, sparse: bool) -> None:
        if self._places is not None:
            places = np.arange(first, first + count, dtype=np.int64)
            self._places.append(~places if sparse else places)


@dataclass(frozen=True)
class StoredBytes:
    """A column of values of bytes: value i is `data[ends[i]:ends[i + 1]]`."""

    ends: Positions
    data: Array

    def take(self, rows: Positions) -> Array:
        """Returns the values at these positions, as `bytes` objects."""
        values = np.empty(len(rows), dtype=object)
        starts, stops = self.ends[rows].tolist(), self.ends[rows + 1].tolist()
        values[:] = [self.data[start:stop].tobytes() for start, stop in zip(starts, stops, strict=True)]
        return values


@dataclass(frozen=True)
class StoredNumbers:
    """A column of which any rows can be had as one fresh array.

    If it holds both dense and sparse rows, `places` says where each is: a position among the dense ones, or,
    negative, the complement of a position among the sparse ones.
    """

    dense: Array | None
    sparse: SparseRows | None
    places: Positions | None

    def take(self, rows: Positions) -> Array:
        """Returns the rows at these positions."""
        if self.sparse is None:
            assert self.dense is not None
            taken: Array = np.take(self.dense, rows, axis=0)
            return taken
        if self.dense is None or self.places is None:
            return self.sparse.take(rows)
        places = self.places[rows]
        is_sparse = places < 0
        out = np.empty((len(rows), self.sparse.width), dtype=self.sparse.values.dtype)
        out[is_sparse] = self.sparse.take(~places[is_sparse])
        out[~is_sparse] = self.dense[places[~is_sparse]]
        return out


StoredColumn = StoredNumbers | StoredBytes


class _BytesStore:
    def __init__(self, spool: Spool) -> None:
        self._ends = spool.store((), np.int64)
        self._data = spool.store((), np.uint8)
        self._ends.append(np.zeros(1, dtype=np.int64))

    def append(self, values: Array) -> None:
        self._ends.append(np.cumsum([len(value) for value in values], dtype=np.int64) + self._data.rows)
        self._data.append(np.frombuffer(b"".join(values), dtype=np.uint8))

    def finish(self) -> StoredBytes:
        return StoredBytes(self._ends.finish(), self._data.finish())


class _SparseStore:
    def __init__(self, spool: Spool, like: SparseRows) -> None:
        self.rows = 0
        self._width = like.width
        self._ends = spool.store((), np.int64)
        self._indices = spool.store((), np.int32)
        self._values = spool.store((), like.values.dtype)
        self._ends.append(np.zeros(1, dtype=np.int64))

    def append(self, block: SparseRows) -> None:
        self._ends.append(block.indptr[1:] + self._values.rows)
        self._indices.append(block.indices)
        self._values.append(block.values)
        self.rows += block.rows

    def finish(self) -> SparseRows:
        return SparseRows(self._ends.finish(), self._indices.finish(), self._values.finish(), self._width)


def _nameless_file(directory: str | None) -> Any:
    return tempfile.TemporaryFile(dir=directory, prefix="keraunos-", buffering=0)
