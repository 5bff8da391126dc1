"""Records as BigDL's programs hold them, as lists of arrays. Runs on the driver and on executors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.errors import DataError
from keraunos.session.registry import started_session


def spread_records(rdd: Any, entries: int) -> Any:
    """Returns an RDD with the given number of first arrays of each record, in lists."""
    return rdd.mapPartitions(functools.partial(plain_records, entries), preservesPartitioning=True)


def spread_arrays(arrays: Sequence[Array]) -> Any:
    """Returns the rows of arrays on the driver as an RDD of such lists."""
    session = started_session()
    rows = len(arrays[0])
    count = max(1, min(rows, session.parallelism))
    bounds = [rows * i // count for i in range(count + 1)]
    portions = [[each[bounds[i] : bounds[i + 1]] for each in arrays] for i in range(count)]
    return session.parallelize(portions, count).flatMap(rows_of)


def plain_records(entries: int, records: Iterator[Any]) -> Iterator[list[Any]]:
    """Yields the given number of first arrays of each record: a `Sample`, a list of arrays, or one array."""
    for record in records:
        given = record.arrays() if isinstance(record, Sample) else record
        if not isinstance(given, (list, tuple)):
            given = [given]
        if len(given) < entries:
            raise DataError(f"A record must have {entries} arrays, inputs first. Received: {len(given)}.")
        yield list(given[:entries])


def rows_of(arrays: Sequence[Array]) -> Iterator[list[Any]]:
    """Returns the rows of arrays as lists."""
    return (list(row) for row in zip(*arrays, strict=True))
