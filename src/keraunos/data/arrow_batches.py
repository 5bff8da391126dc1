"""Arrow record batches as contiguous arrays, without any Python work per row. Runs on workers.

A slot, that is one model input or output, becomes one block: a dense array whose first dimension is the rows, or
`SparseRows` where the column holds sparse vectors. Buffers are viewed where Arrow already has them as numpy would;
float64 and decimals become the job's float type, whole numbers and booleans keep their own. Text and binary columns
become arrays of `bytes` objects, images blocks of their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keraunos.batch import Array, Arrays
from keraunos.data.arrow_nulls import null_rows
from keraunos.data.arrow_types import check_type, excerpt, is_image, is_list, is_tensor, is_vector
from keraunos.data.finite_rows import first_odd, odd_rows, what_is_odd
from keraunos.data.image_rows import image_block, image_size
from keraunos.data.padded_rows import padded_rows
from keraunos.data.sparse_rows import Block, Positions, SparseRows, as_dense
from keraunos.errors import ColumnError, DataError
from keraunos.job.columns import Slot

ArrowColumns = Any  # a pyarrow.RecordBatch, or a mapping from column name to pyarrow.Array; pyarrow is untyped

_DENSE_VECTOR = 1


class ArrowReader:
    """Reads the batches of one stream of rows. All rows must have the shape of the first row.

    Every error names the column, the expectation and an example row, counted from the first row of the stream.
    """

    def __init__(self, slots: Sequence[Slot], *, floatx: str = "float32", allow_nan: bool = False) -> None:
        self.slots = tuple(slots)
        self.rows = 0
        self._floatx = np.dtype(floatx if floatx in ("float16", "float64") else "float32")
        self._allow_nan = allow_nan
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._kept: Positions | None = None

    def read(self, batch: ArrowColumns) -> list[Block]:
        """Returns one block per slot.

        Raises `DataError` for a null, a ragged array, and, unless allowed, NaN or an infinite value.
        """
        columns = self._columns(batch)
        for name, array in columns.items():
            self._refuse_nulls(name, array)
        blocks = [self._slot(slot, columns) for slot in self.slots]
        if not self._allow_nan:
            for slot, block in zip(self.slots, blocks, strict=True):
                self._refuse_odd(slot, block, columns)
        self.rows += len(next(iter(columns.values())))
        return blocks

    def serve(self, batch: ArrowColumns) -> tuple[Arrays, npt.NDArray[np.bool_]]:
        """Returns the inputs of the complete rows, and a mask of the incomplete rows.

        A row with a null, also inside an array, is omitted from the inputs and marked in the mask; the caller sets its
        prediction to null. The same applies to NaN and infinite values, unless they are allowed.
        """
        columns = self._columns(batch)
        length = len(next(iter(columns.values())))
        incomplete = np.zeros(length, dtype=np.bool_)
        for array in columns.values():
            nulls = null_rows(array)
            if nulls is not None:
                incomplete |= nulls
        if incomplete.any():
            self._kept = np.flatnonzero(~incomplete)
            columns = {name: array.take(pa.array(self._kept)) for name, array in columns.items()}
        blocks = [as_dense(self._slot(slot, columns)) for slot in self.slots]
        if not self._allow_nan:
            blocks = _without_odd(blocks, incomplete)
        self._kept = None
        self.rows += length
        return by_slot(self.slots, blocks), incomplete

    def _columns(self, batch: ArrowColumns) -> dict[str, Any]:
        found = batch if isinstance(batch, Mapping) else dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = {}
        for name, kind in dict.fromkeys((column, slot.kind) for slot in self.slots for column in slot.columns):
            if name not in found:
                raise ColumnError(f"Column {name!r} is missing. Expected it in every batch. Received: {list(found)!r}.")
            check_type(name, found[name].type, kind)
            columns[name] = found[name]
        return columns

    def _slot(self, slot: Slot, columns: Mapping[str, Any]) -> Block:
        if slot.kind == "bytes":
            return self._bytes(slot.columns[0], columns[slot.columns[0]])
        if slot.kind == "image":
            return self._image(slot, columns[slot.columns[0]])
        if slot.length is not None:
            (name,) = slot.columns
            return padded_rows(slot, columns[name], self._numbers, self._number)
        if not slot.stacked:
            return self._column(slot.columns[0], columns[slot.columns[0]])
        scalars = [self._scalar(name, columns[name]) for name in slot.columns]
        stacked = np.empty((len(scalars[0]), len(scalars)), dtype=self._common_type(scalars))
        for position, scalar in enumerate(scalars):
            stacked[:, position] = scalar
        return stacked

    def _image(self, slot: Slot, array: Any) -> Array:
        (name,) = slot.columns
        if not len(array):
            return image_block(slot, array, (0, 0, 0))
        size = image_size(name, array, self._number, self._shapes.get(name))
        self._shapes[name] = size
        return image_block(slot, array, size)

    def _scalar(self, name: str, array: Any) -> Array:
        single = not (is_list(array.type) or is_vector(array.type) or is_tensor(array.type))
        block = self._column(name, array) if single else None
        if block is None or isinstance(block, SparseRows):
            raise ColumnError(
                f"Column {name!r} is one of a list of columns, which must hold single numbers. "
                f"Received: {array.type}. Give an array or vector column on its own, or a model input of its own."
            )
        return block

    def _common_type(self, scalars: Sequence[Array]) -> np.dtype[Any]:
        floats = [scalar.dtype for scalar in scalars if scalar.dtype.kind == "f"]
        # numpy would widen int64 with float32 to float64; a model needs the float type in which it computes.
        common = np.result_type(*(floats or scalars))
        return self._floatx if not floats and common.kind == "f" else common

    def _column(self, name: str, array: Any) -> Block:
        if is_vector(array.type):
            return self._vector(name, array)
        if is_tensor(array.type):
            return self._tensor(name, array)
        flat, shape = self._flat(name, array)
        return self._numbers(flat).reshape(shape)

    def _bytes(self, name: str, array: Any) -> Array:
        flat, shape = self._flat(name, array)
        values: Array = pc.cast(flat, pa.large_binary()).to_numpy(zero_copy_only=False)
        return values.reshape(shape)

    def _flat(self, name: str, array: Any) -> tuple[Any, list[int]]:
        """Returns all single values concatenated, and their common shape."""
        shape = [len(array)]
        flat = array
        while is_list(flat.type):
            lengths = pc.list_value_length(flat).to_numpy(zero_copy_only=False)
            shape.append(self._one_length(name, array, lengths, len(shape) - 1))
            flat = flat.flatten()
        if len(array):
            self._shapes[name] = tuple(shape[1:])
        return flat, shape

    def _tensor(self, name: str, array: Any) -> Array:
        shape = tuple(array.type.shape)
        expected = self._shapes.setdefault(name, shape)
        if shape != expected:
            raise self._ragged(name, array, 0, f"shape {expected}", f"shape {shape}")
        return self._in_floatx(array.to_numpy_ndarray())

    def _one_length(self, name: str, array: Any, lengths: Array, depth: int) -> int:
        known = self._shapes.get(name)
        expected = known[depth] if known is not None else int(lengths[0]) if len(lengths) else 0
        wrong = np.flatnonzero(lengths != expected)
        if len(wrong):
            row = int(wrong[0]) * len(array) // len(lengths)
            where = f" at depth {depth + 1}" if depth else ""
            raise self._ragged(name, array, row, f"length {expected}", f"length {lengths[wrong[0]]}{where}")
        return expected

    def _vector(self, name: str, array: Any) -> Block:
        is_dense = array.field("type").to_numpy(zero_copy_only=False) == _DENSE_VECTOR
        lengths = pc.list_value_length(array.field("values")).to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = array.field("size").fill_null(0).to_numpy(zero_copy_only=False)
        width = self._one_width(name, array, np.where(is_dense, lengths, sizes))
        values = self._numbers(array.field("values").flatten())
        if is_dense.all():
            return values.reshape(len(array), width)
        indices = self._indices(name, array, is_dense, lengths, width)
        rows = SparseRows(np.concatenate([[0], np.cumsum(lengths)]), indices, values, width)
        return _smaller(_without_zeros(rows) if is_dense.any() else rows)

    def _one_width(self, name: str, array: Any, widths: Array) -> int:
        known = self._shapes.get(name)
        if known is None and not len(widths):
            return 0
        expected = known[0] if known is not None else int(widths[0])
        wrong = np.flatnonzero(widths != expected)
        if len(wrong):
            row = int(wrong[0])
            raise self._ragged(name, array, row, f"size {expected}", f"size {widths[row]}")
        self._shapes[name] = (expected,)
        return expected

    def _indices(
        self, name: str, array: Any, is_dense: npt.NDArray[np.bool_], lengths: Array, width: int
    ) -> npt.NDArray[np.int32]:
        field = array.field("indices")
        given = field.flatten().to_numpy(zero_copy_only=False)
        counts = pc.list_value_length(field).fill_null(0).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(np.where(is_dense, 0, lengths) != counts)
        if len(given) and not len(wrong) and not (given.min() >= 0 and given.max() < width):
            outside = np.flatnonzero((given < 0) | (given >= width))[0]
            wrong = np.searchsorted(np.cumsum(counts), [outside], side="right")
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"Column {name!r} holds a malformed sparse vector; expected one index below {width} for each value. "
                f"Received: {excerpt(array, row)} in row {self._number(row)}."
            )
        if not is_dense.any():
            indices: npt.NDArray[np.int32] = given.astype(np.int32, copy=False)
            return indices
        indices = np.empty(int(lengths.sum()), dtype=np.int32)
        from_dense = np.repeat(is_dense, lengths)
        indices[from_dense] = np.tile(np.arange(width, dtype=np.int32), int(is_dense.sum()))
        indices[~from_dense] = given
        return indices

    def _numbers(self, flat: Any) -> Array:
        if pa.types.is_decimal(flat.type):
            flat = pc.cast(flat, pa.float64())
        return self._in_floatx(flat.to_numpy(zero_copy_only=False))

    def _in_floatx(self, values: Array) -> Array:
        if values.dtype != np.float64:
            return values
        with np.errstate(over="ignore"):
            return values.astype(self._floatx, copy=False)

    def _refuse_nulls(self, name: str, array: Any) -> None:
        nulls = null_rows(array)
        if nulls is None:
            return
        row = int(np.argmax(nulls))
        what = "a null"
        if array[row].is_valid:
            what = "an image without pixels" if is_image(array.type) else "an array with a null inside"
        raise DataError(
            f"Column {name!r} holds {what}; expected a value in every row. "
            f"Received: {excerpt(array, row)} in row {self._number(row)}. "
            f"Drop such rows, as with df.na.drop(subset=[{name!r}]), or fill them."
        )

    def _refuse_odd(self, slot: Slot, block: Block, columns: Mapping[str, Any]) -> None:
        odd = odd_rows(block)
        if odd is None:
            return
        row = int(np.argmax(odd))
        name = slot.columns[0]
        if slot.stacked and not isinstance(block, SparseRows):
            name = slot.columns[int(np.argmax(~np.isfinite(block[row])))]
        dtype = (block.values if isinstance(block, SparseRows) else block).dtype
        given = columns[name][row].as_py()
        value = first_odd(given, dtype)
        within = "" if np.isscalar(given) else f" in {excerpt(columns[name], row)},"
        raise DataError(
            f"Column {name!r} holds {what_is_odd(value, dtype)}; expected a finite number everywhere. "
            f"Received: {value!r}{within} in row {self._number(row)}. "
            "Drop, clip or impute such values, or set allowNaN=True if the model handles them."
        )

    def _number(self, row: int) -> int:
        return self.rows + (row if self._kept is None else int(self._kept[row]))

    def _ragged(self, name: str, array: Any, row: int, expected: str, found: str) -> DataError:
        advice = "Pad or cut the rows to one shape."
        if is_list(array.type) and "depth" not in found:
            advice = "Set pad=True to fill shorter rows with zeros (maxLength cuts longer ones), or use one shape."
        return DataError(
            f"Column {name!r} is ragged: all rows must have one shape. Expected {expected}, as in the first row. "
            f"Received: {found} in row {self._number(row)}: {excerpt(array, row)}. {advice}"
        )


def by_slot(slots: Sequence[Slot], arrays: Sequence[Array]) -> Arrays:
    """Returns the one array if there is one slot without a name, and otherwise a dict by the slots' names."""
    if len(slots) == 1 and slots[0].name is None:
        return arrays[0]
    return {str(slot.name): array for slot, array in zip(slots, arrays, strict=True)}


def _without_odd(blocks: list[Array], incomplete: npt.NDArray[np.bool_]) -> list[Array]:
    """Returns the complete rows that are finite everywhere; marks the others as incomplete."""
    found = [odd for odd in map(odd_rows, blocks) if odd is not None]
    if not found:
        return blocks
    odd = np.logical_or.reduce(found)
    incomplete[np.flatnonzero(~incomplete)[odd]] = True
    return [block[~odd] for block in blocks]


def _without_zeros(rows: SparseRows) -> SparseRows:
    """Returns the same rows without the zeros that came from dense vectors.

    Negative zeros stay, bit for bit.
    """
    kept = (rows.values != 0) | np.signbit(rows.values)
    before = np.concatenate([[0], np.cumsum(kept)])
    return SparseRows(before[rows.indptr], rows.indices[kept], rows.values[kept], rows.width)


def _smaller(rows: SparseRows) -> Block:
    sparse_bytes = rows.indptr.nbytes + rows.indices.nbytes + rows.values.nbytes
    dense_bytes = rows.rows * rows.width * rows.values.itemsize
    return rows if sparse_bytes < dense_bytes else rows.dense()
