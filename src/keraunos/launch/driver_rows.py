"""Arrays of the driver's as rows of an RDD or a DataFrame. Runs on the driver; what reads portions also on executors.

A task that carries its rows is kept in Java's memory, whole. Large portions therefore travel as broadcast variables,
which Spark moves in pieces and keeps on disk where memory is short. A Python worker reads only the portion of its own
partition. Their files stay on the driver while the session lasts, as those of all broadcast variables do: what was
derived from them may be known to Java alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from keraunos.batch import Array
from keraunos.session.registry import session_of
from keraunos.session.session import Session

# What Spark itself calls a large task begins here.
LARGEST_TASK = 1000 << 10
# Rows become Arrow batches of about so many bytes.
_BATCH_BYTES = 4 << 20


def spread_arrays(
    session: Session, arrays: Sequence[Array], partitions: int, make: Callable[[list[Array]], Any] = tuple
) -> RDD[Any]:
    """An RDD with one element per partition: what `make` gives for the partition's slice of each array, in order.

    There are as many partitions as asked for, or as rows if those are fewer, but at least one.
    """
    # Whatever a program makes of the RDD, Python must know what it has of ours.
    session.choose_own_python()
    portions = _cut(arrays, partitions)
    if max(map(_bytes_of, portions)) <= LARGEST_TASK:
        return session.parallelize([make(each) for each in portions], len(portions))
    sent = [session.broadcast(each) for each in portions]
    return session.parallelize(range(len(sent)), len(sent)).mapPartitions(functools.partial(_made, sent, make))


def spread_columns(
    spark: SparkSession,
    arrays: Sequence[Array],
    partitions: int,
    columns: Callable[[list[Array]], list[Any]],
    schema: str,
) -> DataFrame:
    """A DataFrame of the arrays' rows, in order.

    Args:
        spark: the SparkSession that the DataFrame is of.
        arrays: arrays with as many rows as each other. They are sent in their own types.
        partitions: how many partitions to make.
        columns: gives the Arrow columns for a slice of each array; called on executors.
        schema: the names and types of these columns.
    """
    portions = _cut(arrays, partitions)
    session = session_of(spark)
    sent = [session.broadcast(each) for each in portions]
    numbers = spark.range(0, len(sent), 1, len(sent))
    with session.own_python():
        return numbers.mapInArrow(functools.partial(_batches, sent, columns), schema)


def _cut(arrays: Sequence[Array], partitions: int) -> list[list[Array]]:
    rows = len(arrays[0])
    count = max(1, min(partitions, rows))
    cuts = [rows * at // count for at in range(count + 1)]
    return [[array[start:stop] for array in arrays] for start, stop in itertools.pairwise(cuts)]


def _bytes_of(arrays: Sequence[Any]) -> int:
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays)


def _made(sent: Sequence[Any], make: Callable[[list[Array]], Any], numbers: Iterator[int]) -> Iterator[Any]:
    for number in numbers:
        yield make(sent[number].value)


def _batches(sent: Sequence[Any], columns: Callable[[list[Array]], list[Any]], numbers: Iterator[Any]) -> Iterator[Any]:
    for number in itertools.chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
        arrays = [np.asarray(each) for each in sent[number].value]
        rows = len(arrays[0])
        step = max(1, rows * _BATCH_BYTES // max(1, _bytes_of(arrays)))
        for start in range(0, rows, step):
            found = columns([each[start : start + step] for each in arrays])
            yield pa.RecordBatch.from_arrays(found, [f"_{at}" for at in range(len(found))])
