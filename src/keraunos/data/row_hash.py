"""A 128-bit hash of each row's content, by which a shard sorts its rows. Runs on workers.

Spark does not preserve row order across a shuffle, so rows must be identified by their content. Each of the two
64-bit words is a multilinear hash: the row's bytes as 32-bit words, each times a 64-bit key of its position, summed
modulo 2**64. Words of 32 bits matter: the product of a 64-bit word whose low bits are zero, as in most floats,
would keep few bits. A zero word adds nothing, so a vector hashes alike whether it is stored dense or sparse. Values
of bytes have any length and are hashed one by one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from keraunos.batch import Array
from keraunos.data.sparse_rows import Block, Positions, SparseRows, row_count

Hashes = npt.NDArray[np.uint64]

_CHUNK_WORDS = 1 << 16
_CHUNK_ELEMENTS = 1 << 14
_TABLE_WORDS = 1 << 20
_GOLDEN = 0x9E3779B97F4A7C15
_ALL_BITS = (1 << 64) - 1


class RowHasher:
    """Hashes rows that consist of one block per slot; caches the keys of positions."""

    def __init__(self) -> None:
        self._tables: dict[int, Hashes] = {}

    def hash(self, blocks: Sequence[Block]) -> Hashes:
        """Two words for each row, over all of its blocks."""
        total = np.zeros((row_count(blocks[0]), 2), dtype=np.uint64)
        for slot, block in enumerate(blocks):
            total += self._sparse(slot, block) if isinstance(block, SparseRows) else self._dense(slot, block)
        return total

    def _dense(self, slot: int, block: Array) -> Hashes:
        if block.dtype.kind == "O":
            return _of_bytes(slot, block)
        rows = len(block)
        flat = np.ascontiguousarray(block).reshape(rows, math.prod(block.shape[1:]))
        words = _words(flat)
        keys = self._table(slot, words.shape[1])
        step = max(1, _CHUNK_WORDS // max(1, words.shape[1]))
        out = np.empty((rows, 2), dtype=np.uint64)
        for start in range(0, rows, step):
            np.matmul(words[start : start + step].astype(np.uint64), keys, out=out[start : start + step])
        return out

    def _sparse(self, slot: int, block: SparseRows) -> Hashes:
        out = np.empty((block.rows, 2), dtype=np.uint64)
        for start, stop in _row_chunks(block.indptr):
            out[start:stop] = self._sparse_chunk(slot, block, start, stop)
        return out

    def _sparse_chunk(self, slot: int, block: SparseRows, start: int, stop: int) -> Hashes:
        part = slice(block.indptr[start], block.indptr[stop])
        words = _words(block.values[part, None])
        each = words.shape[1]
        within: Hashes = np.arange(each, dtype=np.uint64)
        first: Hashes = block.indices[part].astype(np.uint64)[:, None]
        positions: Hashes = np.add(first * each, within, dtype=np.uint64).reshape(-1)
        width = block.width * each
        table = width <= _TABLE_WORDS
        keys = self._table(slot, width).take(positions.view(np.int64), axis=0) if table else _keys(slot, positions)
        keys *= words.reshape(-1, 1)
        sums = np.zeros((len(positions) + 1, 2), dtype=np.uint64)
        np.cumsum(keys, axis=0, out=sums[1:])
        ends: Hashes = sums[(block.indptr[start : stop + 1] - block.indptr[start]) * each]
        return ends[1:] - ends[:-1]

    def _table(self, slot: int, width: int) -> Hashes:
        table = self._tables.get(slot)
        if table is None or len(table) < width:
            table = self._tables[slot] = _keys(slot, np.arange(width, dtype=np.uint64))
        return table[:width]


def canonical_order(hashes: Hashes) -> npt.NDArray[np.int64]:
    """The positions of the rows in the order of their hashes: the same for the same rows, however they arrived."""
    order: npt.NDArray[np.int64] = np.argsort(hashes[:, 0])
    first = hashes[order, 0]
    if (first[1:] == first[:-1]).any():
        order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    return order


def _of_bytes(slot: int, block: Array) -> Hashes:
    # Values of any length are hashed one by one.
    person = slot.to_bytes(16, "big")
    digests = (hashlib.blake2b(value, digest_size=16, person=person).digest() for value in block)
    hashes: Hashes = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
    return hashes


def _row_chunks(indptr: Positions) -> Iterator[tuple[int, int]]:
    """Ranges of rows with few enough elements that what is computed of them stays in the cache."""
    marks = np.arange(_CHUNK_ELEMENTS, indptr[-1], _CHUNK_ELEMENTS)
    bounds = np.unique([0, *np.searchsorted(indptr, marks).tolist(), len(indptr) - 1]).tolist()
    return pairwise(bounds)


def _words(flat: Array) -> npt.NDArray[np.uint32]:
    size = flat.dtype.itemsize
    if size >= 4 or (flat.dtype.kind != "f" and (flat.shape[1] * size) % 4 == 0 and flat.shape[1]):
        return flat.view(np.uint32)
    # Half floats also get one word each, so that an element's key depends only on its position, dense or sparse.
    return flat.view(f"u{size}").astype(np.uint32)


def _keys(slot: int, positions: Hashes) -> Hashes:
    """The two keys of each position: splitmix64, two streams a slot, so that any key can be had without a table."""
    seeds = np.array([_mixed_seed(2 * slot), _mixed_seed(2 * slot + 1)], dtype=np.uint64)
    return _splitmix(seeds + positions[:, None] * np.uint64(_GOLDEN))


def _mixed_seed(stream: int) -> int:
    seed = np.array([(stream + 1) * _GOLDEN & _ALL_BITS], dtype=np.uint64)
    return int(_splitmix(_splitmix(seed))[0])


def _splitmix(state: Hashes) -> Hashes:
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
