"""Predictions for the records of an RDD. Runs on the driver."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from pyspark import RDD

from keraunos.errors import JobError
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.launch.spark import worker_environment
from keraunos.session.registry import session_of
from keraunos.worker.record_predictions import predict_kept, predict_records


def predict_rdd(
    rdd: RDD[Any],
    source: ModelSource,
    columns: Columns,
    batch_rows: int = 1024,
    custom_objects: Mapping[str, Any] | None = None,
    *,
    kept: bool = False,
) -> RDD[Any]:
    """What the model gives for each record, in the records' order; nothing is computed before the RDD is used.

    A record has one entry for each column (see `keraunos.data.records`); only the features are looked at. For a model
    with one output the new records are arrays, otherwise lists of arrays in the order of the outputs.

    With `kept` the RDD has pairs of anything and a record, or `None`, and the new one has pairs of that and the
    prediction, or `None`.
    """
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise JobError(f"`batch_rows` must be a whole number of at least 1. Received: {batch_rows!r}.")
    session = session_of(rdd)
    settings = {
        "key": hashlib.sha256(source.archive).hexdigest(),
        "model": source.to_json(),
        "columns": columns.to_json(),
        "batch_rows": batch_rows,
    }
    archive = session.broadcast(source.archive)
    task = functools.partial(predict_kept if kept else predict_records, settings, archive, dict(custom_objects or {}))
    with worker_environment(session, source.backend):
        # What is mapped further would otherwise run in one worker with it, in an environment of its own.
        return session.pinned(rdd.mapPartitions(task, preservesPartitioning=True))
