"""Where the rows of a dataset come from. The classes run on the driver, what they hand to Spark on executors.

Every source returns two things: the training data, a DataFrame or an RDD of flat records in any order, and the same
records as an RDD in their own order, for predictions. Nothing is computed before one of them is used.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from pyspark import RDD
from pyspark.sql import DataFrame

from keraunos.batch import Array
from keraunos.compat.zoo.tfpark.structure import TensorMeta, conformed, flat_records, flatten, pack
from keraunos.errors import DataError, JobError
from keraunos.job.columns import Columns
from keraunos.launch.paired_partitions import with_marks
from keraunos.launch.spark import worker_environment
from keraunos.ml.validation_rows import INDICATOR, with_validation
from keraunos.session.registry import session_of
from keraunos.session.session import Session

# The column that marks validation rows.
VALIDATION = INDICATOR


class RowSource(ABC):
    """Rows that can be trained on and predicted for."""

    @abstractmethod
    def partitions(self) -> int | None:
        """Returns how many partitions there are to train on; `None` if as many can be had as are wanted."""

    @abstractmethod
    def training(self, workers: int) -> DataFrame | RDD[Any]:
        """Returns the training data for a fit with this many workers."""

    def with_validation(self, workers: int, validation: RowSource, columns: Columns) -> DataFrame | RDD[Any]:
        """Returns the training data of such a fit, with the marked rows of another source for validation."""
        training, other = self.training(workers), validation.training(workers)
        assert isinstance(training, RDD)
        assert isinstance(other, RDD)
        with worker_environment(session_of(training), "tensorflow"):
            return with_marks(training, other, workers)

    @abstractmethod
    def records(self) -> RDD[tuple[Any, ...]]:
        """Flat records, in the order given by the user."""

    def columns(self) -> tuple[str, ...] | None:
        """Returns the columns of `training` where it is a DataFrame, one per tensor; `None` if it is an RDD."""
        return None

    def arrays(self, metas: Sequence[TensorMeta]) -> list[Array]:
        """Returns all rows, collected to the driver, as one array per tensor."""
        entries: list[list[Any]] = [[] for _ in metas]
        records = self.records()
        with worker_environment(session_of(records), "tensorflow"):
            brought = records.toLocalIterator(prefetchPartitions=True)
        for record in brought:
            for entry, kept in zip(record, entries, strict=True):
                kept.append(entry)
        return [stacked(kept, meta) for kept, meta in zip(entries, metas, strict=True)]


class RddRows(RowSource):
    """An RDD of records that have the nest of a structure."""

    def __init__(self, rdd: Any, structure: Any, argument: str = "rdd") -> None:
        if not isinstance(rdd, RDD):
            raise JobError(f"`{argument}` must be an RDD. Received: {type(rdd).__name__}.")
        self.rdd = rdd
        self._task = functools.partial(flat_records, structure)

    def partitions(self) -> int:
        """Returns the RDD's own."""
        return int(self.rdd.getNumPartitions())

    def training(self, workers: int) -> RDD[Any]:
        """Returns the records, flat; the launcher coalesces the partitions."""
        return self.records()

    def records(self) -> RDD[tuple[Any, ...]]:
        """Returns the records, flat."""
        return self.rdd.mapPartitions(self._task, preservesPartitioning=True)


class ArrayRows(RowSource):
    """Arrays of the driver's, sliced along their first axis."""

    def __init__(self, session: Session, arrays: Sequence[Array]) -> None:
        self._session = session
        self._arrays = list(arrays)
        self._rows = len(self._arrays[0])

    def partitions(self) -> int:
        """Returns one per row, if need be."""
        return max(1, self._rows)

    def training(self, workers: int) -> RDD[Any]:
        """Returns one portion of the arrays per worker."""
        return self._portions(workers)

    def with_validation(self, workers: int, validation: RowSource, columns: Columns) -> RDD[Any]:
        """Returns one portion of the arrays of both a worker."""
        if not isinstance(validation, ArrayRows):
            return super().with_validation(workers, validation, columns)
        both = zip(self._cut(workers), validation._cut(workers), strict=True)
        return self._session.parallelize(list(both), workers).flatMap(_marked_rows_of)

    def records(self) -> RDD[tuple[Any, ...]]:
        """Returns one portion of the arrays per slot, in order."""
        return self._portions(max(1, min(self._rows, self._session.parallelism)))

    def arrays(self, metas: Sequence[TensorMeta]) -> list[Array]:
        """Returns the arrays, which are here already."""
        return self._arrays

    def _portions(self, count: int) -> RDD[Any]:
        return self._session.parallelize(self._cut(count), count).flatMap(_rows_of)

    def _cut(self, count: int) -> list[tuple[Array, ...]]:
        bounds = [self._rows * i // count for i in range(count + 1)]
        return [tuple(array[bounds[i] : bounds[i + 1]] for array in self._arrays) for i in range(count)]


class FrameRows(RowSource):
    """Columns of a DataFrame, one per tensor."""

    def __init__(self, dataframe: DataFrame, columns: Sequence[str], metas: Sequence[TensorMeta]) -> None:
        self.dataframe = dataframe.select(*(f"`{name}`" for name in columns))
        self._columns = tuple(columns)
        self._metas = tuple(metas)

    def partitions(self) -> None:
        """A DataFrame is repartitioned to the number of workers."""
        return

    def training(self, workers: int) -> DataFrame:
        """Returns the DataFrame itself, whose rows go to the workers as Arrow batches."""
        return self.dataframe

    def with_validation(self, workers: int, validation: RowSource, columns: Columns) -> DataFrame | RDD[Any]:
        """Returns the rows of both DataFrames, redistributed to the workers."""
        if not isinstance(validation, FrameRows):
            return super().with_validation(workers, validation, columns)
        conf = self.dataframe.sparkSession.conf
        return with_validation(
            self.dataframe,
            validation.dataframe,
            columns,
            workers,
            case_sensitive=str(conf.get("spark.sql.caseSensitive")).lower() == "true",
        )

    def records(self) -> RDD[tuple[Any, ...]]:
        """Returns the rows as records of arrays."""
        return self.dataframe.rdd.mapPartitions(functools.partial(_rows_to_records, self._metas))

    def columns(self) -> tuple[str, ...]:
        """Returns the DataFrame's columns, in the order of the tensors."""
        return self._columns


def stacked(entries: Sequence[Any], meta: TensorMeta) -> Array:
    """Entries of many records as one array with a first dimension for the records."""
    if not entries:
        shape = [0, *(length or 0 for length in meta.shape or ())]
        return np.zeros(shape, dtype=object if meta.dtype == "string" else meta.dtype)
    if meta.dtype == "string":
        return np.array(list(entries), dtype=object)
    try:
        return np.stack(list(entries))
    except ValueError:
        shapes = sorted({np.shape(entry) for entry in entries})
        raise DataError(
            f"The entries for the tensor {meta.name!r} must have one shape to go together in a batch. Received: shapes "
            f"{', '.join(map(str, shapes[:4]))}. Pad them to one shape."
        ) from None


def chosen(records: RDD[tuple[Any, ...]], places: Sequence[int]) -> RDD[tuple[Any, ...]]:
    """Returns the records with some of their entries, in another order."""
    return records.mapPartitions(functools.partial(_chosen, tuple(places)), preservesPartitioning=True)


def array_structure(tensors: Any, argument: str) -> tuple[Any, list[Array]]:
    """Returns the structure of a nest of arrays, without names, and the arrays themselves; float64 becomes float32."""
    arrays = [_plain(np.asarray(tensor)) for tensor in flatten(tensors)]
    lengths = {array.shape[0] if array.ndim else -1 for array in arrays}
    if not arrays or len(lengths) != 1 or -1 in lengths:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise JobError(
            f"`{argument}` must be arrays with a row for each record, all of one length. Received: "
            f"{f'shapes {shapes}' if arrays else repr(tensors)}."
        )
    metas = [TensorMeta.of(array.dtype, array.shape[1:], "tensor") for array in arrays]
    return pack(tensors, metas), arrays


def _plain(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _chosen(places: Sequence[int], records: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    return (tuple(record[place] for place in places) for record in records)


def _rows_of(portion: Sequence[Array]) -> Iterator[tuple[Any, ...]]:
    return zip(*portion, strict=True)


def _marked_rows_of(portions: tuple[Sequence[Array], Sequence[Array]]) -> Iterator[tuple[Any, ...]]:
    """Returns rows to train on and rows to validate on, with a mark behind each."""
    return ((*row, mark) for portion, mark in zip(portions, (False, True), strict=True) for row in _rows_of(portion))


def _rows_to_records(metas: Sequence[TensorMeta], rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(rows):
        yield tuple(
            conformed(value.toArray() if hasattr(value, "toArray") else value, meta, number)
            for value, meta in zip(row, metas, strict=True)
        )
