"""Records of an RDD as Arrow columns, chunk by chunk. Runs on workers.

A record is a tuple or list with one entry per column, a dict or `Row` with the columns' names, a `LabeledPoint`, or,
for a job that reads one column, the entry alone. An entry is a number, an array of any shape, a list, a spark.ml or
mllib vector, or, for models that take them, bytes or text. Python handles each record once; only numpy copies the
elements of arrays. A record may also be a `RowBlock` of several rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from keraunos.batch import Array
from keraunos.errors import DataError

_FIRST_CHUNK, _LARGEST_CHUNK = 64, 4096
_CHUNK_BYTES = 4 << 20
_EXCERPT = 100
# Recognized by their names, because workers do not import Spark.
_BYTES = (bytes, bytearray, str)
_DENSE, _SPARSE, _LABELED = "DenseVector", "SparseVector", "LabeledPoint"


@dataclass(frozen=True)
class RowBlock:
    """Several records at once: an array for each column, whose first axis is the rows."""

    columns: Sequence[Array]


def arrow_columns(records: Iterable[Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the records as mappings from column name to `pyarrow.Array`, which an `ArrowReader` takes like any batch.

    `names` are the columns in the order of a record's entries. Raises `DataError` for a record that is ragged, mistyped
    or incomplete.
    """
    columns = [_Column(name) for name in names]
    source = iter(records)
    first = 0
    for head in source:
        if isinstance(head, RowBlock):
            chunks = _cut(head, columns)
        else:
            rows = itertools.islice(source, _chunk_rows(columns) - 1)
            chunks = iter([_by_column([head, *rows], names, first)])
        for chunk in chunks:
            yield {column.name: column.arrow(values, first) for column, values in zip(columns, chunk, strict=True)}
            first += len(chunk[0])


def _chunk_rows(columns: Sequence[_Column]) -> int:
    row_bytes = sum(column.row_bytes for column in columns)
    return max(1, min(_LARGEST_CHUNK, _CHUNK_BYTES // row_bytes)) if row_bytes else _FIRST_CHUNK


def _cut(block: RowBlock, columns: Sequence[_Column]) -> Iterator[Sequence[Any]]:
    start, rows = 0, len(block.columns[0])
    while start < rows:
        stop = start + _chunk_rows(columns)
        yield [array[start:stop] for array in block.columns]
        start = stop


def _by_column(chunk: Sequence[Any], names: Sequence[str], first: int) -> Sequence[Sequence[Any]]:
    plain = set(map(type, chunk)) <= {tuple, list} and set(map(len, chunk)) == {len(names)}
    entries = chunk if plain else [_entries(record, names, first + at) for at, record in enumerate(chunk)]
    return list(zip(*entries, strict=True))


def _entries(record: Any, names: Sequence[str], number: int) -> Sequence[Any]:
    """Returns the entry of one record for each column."""
    entries: Sequence[Any]
    if isinstance(record, (tuple, list)):
        fields: Sequence[str] = getattr(record, "__fields__", ())
        entries = [record[fields.index(name)] for name in names] if set(names) <= set(fields) else record
    elif isinstance(record, Mapping):
        absent = [name for name in names if name not in record]
        if absent:
            raise _wrong_record(f"lacks {', '.join(map(repr, absent))}", names, record, number)
        entries = [record[name] for name in names]
    elif type(record).__name__ == _LABELED:
        entries = (record.features, record.label)
    elif len(names) == 1:
        entries = (record,)
    else:
        raise _wrong_record(f"is one {type(record).__name__}", names, record, number)
    if len(entries) != len(names):
        raise _wrong_record(f"has {len(entries)} entries", names, record, number)
    return entries


def _wrong_record(what: str, names: Sequence[str], record: Any, number: int) -> DataError:
    wanted = f"{len(names)} entries, one for each of {', '.join(map(repr, names))}"
    if len(names) == 1:
        wanted = f"one entry, for {names[0]!r}, be it alone or in a tuple"
    return DataError(
        f"A record of the RDD {what}. Expected {wanted}. Received: {_excerpt(record)} in record {number}. "
        "Map the RDD to such tuples, or to dicts with those names."
    )


class _Column:
    """One column. All entries must have the type and shape of the first one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.row_bytes = 0
        self._shape: tuple[int, ...] | None = None
        self._dtype: np.dtype[Any] | None = None
        self._holds_bytes = False

    def arrow(self, values: Sequence[Any], first: int) -> Any:
        """Returns the entries of a chunk, whose first record has the number `first`, as an Arrow array."""
        if self._holds_bytes or (self._shape is None and isinstance(values[0], _BYTES)):
            return self._binary(values, first)
        kinds = set() if isinstance(values, np.ndarray) else {kind.__name__ for kind in set(map(type, values))}
        if _SPARSE in kinds and kinds <= {_SPARSE, _DENSE}:
            return self._vectors(values)
        if kinds & {_SPARSE, _DENSE}:
            values = [value.toArray() if type(value).__name__ in (_SPARSE, _DENSE) else value for value in values]
        array = self._of_one_type(self._stacked(values, first), values, first)
        if not array.size:
            raise self._wrong("an empty array", "an array with at least one element", values, first, first)
        self._shape = array.shape[1:]
        self.row_bytes = array.nbytes // len(array)
        return _as_arrow(array)

    def _binary(self, values: Sequence[Any], first: int) -> Any:
        self._holds_bytes = True
        odd = next((number for number, value in enumerate(values, first) if not isinstance(value, _BYTES)), None)
        if odd is not None:
            found = values[odd - first]
            kind = "None" if found is None else f"a {type(found).__name__}"
            raise self._wrong(kind, "bytes or text, as in the first record", values, first, odd)
        encoded = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
        self.row_bytes = sum(map(len, encoded)) // len(encoded)
        return pa.array(encoded, pa.large_binary())

    def _stacked(self, values: Sequence[Any], first: int) -> Array:
        try:
            stacked: Array = np.asarray(values)
        except (ValueError, TypeError):
            raise self._odd_one(values, first) from None
        if stacked.dtype.kind not in "biuf" or self._shape not in (None, stacked.shape[1:]):
            raise self._odd_one(values, first)
        return stacked

    def _odd_one(self, values: Sequence[Any], first: int) -> DataError:
        """Returns the error for a chunk that is no array: it tells the first record at fault."""
        expected = self._shape
        for number, value in enumerate(values, first):
            try:
                array = np.asarray(value)
            except (ValueError, TypeError):
                return self._wrong("a ragged list", "numbers in lists of one length", values, first, number)
            if array.dtype.kind == "O" and any(each is None for each in array.reshape(-1)):
                return self._wrong("None", "a value in every record", values, first, number)
            if array.dtype.kind not in "biuf":
                kind = f"a {type(value).__name__}" if array.ndim == 0 else f"an array of {array.dtype}"
                return self._wrong(kind, "a number, an array of numbers, or a vector", values, first, number)
            if expected is None:
                expected = array.shape
            if array.shape != expected:
                found = f"an entry of shape {array.shape}"
                return self._wrong(found, f"shape {expected}, as in the records before", values, first, number)
        return self._wrong("numbers of types that do not go together", "one type", values, first, first)

    def _of_one_type(self, array: Array, values: Sequence[Any], first: int) -> Array:
        """Convert to the type of the first chunk; raises an error if a number does not fit."""
        native = array.dtype.newbyteorder("=")
        if native.kind == "f" and native.itemsize > 8:
            native = np.dtype(np.float64)
        if self._dtype is None:
            self._dtype = native
        if array.dtype == self._dtype:
            return array
        with np.errstate(invalid="ignore", over="ignore"):
            cast = array.astype(self._dtype)
        exact = native.kind in "iu" and self._dtype.kind in "iu"
        if exact or not np.can_cast(native, self._dtype, "same_kind"):
            changed = np.flatnonzero((cast != array).reshape(len(array), -1).any(axis=1))
            if len(changed):
                expected = f"{self._dtype}, as in the first records"
                raise self._wrong(f"{native}", expected, values, first, first + int(changed[0]))
        return cast

    def _vectors(self, values: Sequence[Any]) -> Any:
        """Vectors of which some are sparse, as Spark itself would send them."""
        dense = [type(value).__name__ == _DENSE for value in values]
        parts = [value.array if is_dense else value.values for value, is_dense in zip(values, dense, strict=True)]
        places = [_NOWHERE if is_dense else value.indices for value, is_dense in zip(values, dense, strict=True)]
        sizes = [len(value) if is_dense else value.size for value, is_dense in zip(values, dense, strict=True)]
        self._shape = self._shape or (sizes[0],)
        fields = {
            "type": pa.array(np.array(dense, dtype=np.int8)),
            "size": pa.array(np.array(sizes, dtype=np.int32)),
            "indices": _lists(places),
            "values": _lists(parts),
        }
        self.row_bytes = 12 * sum(map(len, parts)) // len(parts)
        return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))

    def _wrong(self, found: str, expected: str, values: Sequence[Any], first: int, number: int) -> DataError:
        return DataError(
            f"Column {self.name!r} of the RDD holds {found}. Expected {expected}. "
            f"Received: {_excerpt(values[number - first])} in record {number}. Map or filter the RDD first."
        )


_NOWHERE = np.empty(0, dtype=np.int32)


def _lists(arrays: Sequence[Array]) -> Any:
    offsets = np.zeros(len(arrays) + 1, dtype=np.int32)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(arrays)))


def _as_arrow(array: Array) -> Any:
    if array.ndim == 1:
        return pa.array(array)
    flat = pa.array(array.reshape(-1))
    if array.dtype.kind != "b":
        rows = pa.FixedSizeListArray.from_arrays(flat, array[0].size)
        return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, array.shape[1:]), rows)
    # Arrow packs booleans into bits and has no tensors of them.
    nested = flat
    for length in reversed(array.shape[1:]):
        nested = pa.FixedSizeListArray.from_arrays(nested, length)
    return nested


def _excerpt(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
