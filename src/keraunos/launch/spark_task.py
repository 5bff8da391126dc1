"""The task that Spark runs for each worker. Runs on executors.

Spark pickles a reference to one of these functions and the plain data it is given; nothing here closes over the driver.
The connection holds the job's secrets, so what is large comes apart from it, in the payload.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from keraunos.data.records import arrow_columns
from keraunos.exchange import hosting
from keraunos.exchange.client import Stopped
from keraunos.launch.task_payload import Packed, unpacked
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
                hosting.host_slice(connection, index, context.taskAttemptId(), loop.versions())
        except Stopped as stopped:
            logger.info("the server of slice %d ends: %s", index, stopped)
        yield index


def train_partition(
    connection: Mapping[str, Any], packed: Packed, record_batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Train one partition's rank to the end; gives one row, the rank, so that Spark has a result.

    The columns come without their names.
    """
    payload = unpacked(packed)
    seat, names = _seat(payload.place), list(payload.names)
    loop.run(seat, connection, (batch.rename_columns(names) for batch in record_batches), payload.custom_objects)
    yield pa.RecordBatch.from_pydict({"rank": pa.array([seat.rank], pa.int32())})


def train_records(
    connection: Mapping[str, Any], packed: Packed, partition: int, records: Iterable[Any]
) -> Iterator[int]:
    """Train the rank of one partition of an RDD to the end; the columns' names say which entries of a record count."""
    payload = unpacked(packed)
    seat = _seat(payload.place)
    if payload.before is not None:
        records = payload.before(partition, records)
    loop.run(seat, connection, arrow_columns(iter(records), payload.names), payload.custom_objects)
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
