"""Measures of a model over the records of an RDD, or the rows of a DataFrame. Runs on the driver.

Tasks send the state of the metrics, and the states of all are read together: the result does not depend on how the
records are cut.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from keraunos.batch import BatchSpec
from keraunos.errors import DataError
from keraunos.exchange.messages import Failed
from keraunos.formats.registry import load_home
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.launch.spark import read_columns, translated, worker_environment
from keraunos.session.registry import session_of
from keraunos.worker.failure import raise_failure
from keraunos.worker.record_measures import measure_records
from keraunos.worker.row_measures import RESULT_SCHEMA, measure_rows, state_from_bytes


def evaluate_rdd(
    rdd: RDD[Any],
    source: ModelSource,
    columns: Columns,
    batch_rows: int,
    custom_objects: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """The loss and the metrics of a model over all records, by name; each record counts by its weight, if any."""
    session = session_of(rdd)
    settings = {"model": source.to_json(), "columns": columns.to_json(), "batch_rows": batch_rows}
    task = functools.partial(measure_records, settings, session.broadcast(source.archive), dict(custom_objects or {}))
    with worker_environment(session, source.backend):
        found = rdd.mapPartitions(task).collect()
    if not found:
        raise DataError("There are no records to measure. Expected: at least one. Received: none.")
    states = load_home(source, custom_objects).metric_states(BatchSpec.from_json(found[0][0]))
    return states.read([state for _, state in found])


def evaluate_frame(
    dataframe: DataFrame,
    source: ModelSource,
    columns: Columns,
    batch_rows: int,
    custom_objects: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """The loss and the metrics of a model over all rows, by name; the rows stay where they are."""
    session = session_of(dataframe)
    settings = {
        "key": hashlib.sha256(source.archive).hexdigest(),
        "model": source.to_json(),
        "columns": columns.to_json(),
        "batch_rows": batch_rows,
    }
    task = functools.partial(measure_rows, settings, session.broadcast(source.archive), dict(custom_objects or {}))
    with worker_environment(session, source.backend):
        # Made in here: Spark notes the workers' environment when a function is wrapped.
        measured = read_columns(dataframe, columns).mapInArrow(task, RESULT_SCHEMA)
    try:
        found = measured.collect()
    except PySparkException as error:
        raise translated(error) from error
    for number, row in enumerate(found):
        if row.failure is not None:
            raise_failure(number, Failed.of(json.loads(row.failure)))
    if not found:
        raise DataError("The DataFrame has no rows to evaluate. Expected at least one. Received: 0 rows.")
    states = load_home(source, custom_objects).metric_states(BatchSpec.from_json(json.loads(found[0].spec)))
    return states.read([state_from_bytes(row.state) for row in found])
