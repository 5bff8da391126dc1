"""Measures of a model over the records of an RDD. Runs on the driver.

Tasks send the state of the metrics, and the states of all are read together: the result does not depend on how the
records are cut.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from pyspark import RDD

from keraunos.batch import BatchSpec
from keraunos.errors import DataError
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.launch.spark import worker_environment
from keraunos.learners.registry import load_home
from keraunos.worker.record_measures import measure_records


def evaluate_rdd(
    rdd: RDD[Any],
    source: ModelSource,
    columns: Columns,
    batch_rows: int,
    custom_objects: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """The loss and the metrics of a model over all records, by name; each record counts by its weight, if any."""
    context = rdd.context
    settings = {"model": source.to_json(), "columns": columns.to_json(), "batch_rows": batch_rows}
    task = functools.partial(measure_records, settings, context.broadcast(source.archive), dict(custom_objects or {}))
    with worker_environment(context, source.backend):
        found = rdd.mapPartitions(task).collect()
    if not found:
        raise DataError("There are no records to measure. Expected: at least one. Received: none.")
    states = load_home(source, custom_objects).metric_states(BatchSpec.from_json(found[0][0]))
    return states.read([state for _, state in found])
