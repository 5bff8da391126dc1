"""The task that Spark runs for each worker. Runs on executors.

Spark pickles a reference to one of these functions and the plain data it is given; nothing here closes over the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from keraunos.data.records import arrow_columns
from keraunos.exchange import hosting
from keraunos.exchange.client import Stopped
from keraunos.worker import loop
from keraunos.worker.thread_name import server_name, thread_named

logger = logging.getLogger(__name__)

RESULT_SCHEMA = "rank int"


def serve_slice(connection: Mapping[str, Any], indices: Iterator[int]) -> Iterator[int]:
    """Host the slice of the one index in this partition until the training is over."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a server runs inside a Spark task only")
    for index in indices:
        try:
            with thread_named(server_name(index)):
                hosting.host_slice(connection, index, context.taskAttemptId(), {"versions": loop.versions()})
        except Stopped as stopped:
            logger.info("the server of slice %d ends: %s", index, stopped)
        yield index


def train_partition(
    connection: Mapping[str, Any],
    place: Mapping[str, Any],
    custom_objects: Mapping[str, Any] | None,
    record_batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Train one partition's rank to the end; gives one row, the rank, so that Spark has a result."""
    seat = _seat(place)
    loop.run(seat, connection, record_batches, custom_objects)
    yield pa.RecordBatch.from_pydict({"rank": pa.array([seat.rank], pa.int32())})


def train_records(
    connection: Mapping[str, Any],
    place: Mapping[str, Any],
    custom_objects: Mapping[str, Any] | None,
    names: Sequence[str],
    records: Iterator[Any],
) -> Iterator[int]:
    """Train the rank of one partition of an RDD to the end; `names` are the columns that a record's entries fill."""
    seat = _seat(place)
    loop.run(seat, connection, arrow_columns(records, names), custom_objects)
    yield seat.rank


def _seat(place: Mapping[str, Any]) -> loop.Seat:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a worker runs inside a Spark task only")
    devices = context.resources().get("gpu")
    return loop.Seat(
        rank=context.partitionId(),
        incarnation=context.taskAttemptId(),
        threads=int(place["threads"]),
        workers_on_host=int(place["workers_on_host"]),
        devices=tuple(devices.addresses) if devices else (),
    )
