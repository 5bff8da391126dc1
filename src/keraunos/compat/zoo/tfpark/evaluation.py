"""Measures of a model over the records of an RDD. `evaluate_rdd` runs on the driver, `measure_records` on executors.

Tasks send the state of the metrics, and the states of all are read together: the result does not depend on how the
records are cut.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark import RDD

from keraunos.batch import Batch, BatchSpec
from keraunos.data.arrow_batches import ArrowReader, by_slot
from keraunos.data.records import arrow_columns
from keraunos.data.regroup import arrays_rows, regroup
from keraunos.errors import DataError
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.launch.spark import worker_environment
from keraunos.learners.learner import Learner
from keraunos.learners.registry import load_home, load_learner


def evaluate_rdd(rdd: RDD[Any], source: ModelSource, columns: Columns, batch_rows: int) -> dict[str, float]:
    """The loss and the metrics of a model over all records, by name."""
    context = rdd.context
    settings = {"model": source.to_json(), "columns": columns.to_json(), "batch_rows": batch_rows}
    task = functools.partial(measure_records, settings, context.broadcast(source.archive))
    with worker_environment(context, source.backend):
        found = rdd.mapPartitions(task).collect()
    if not found:
        raise DataError("There are no records to measure. Expected: at least one. Received: none.")
    states = load_home(source).metric_states(BatchSpec.from_json(found[0][0]))
    return states.read([state for _, state in found])


def measure_records(settings: Mapping[str, Any], archive: Any, records: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """What a batch looks like and the state of the metrics after all batches; nothing where there are no records."""
    columns = Columns.from_json(settings["columns"])
    model = settings["model"]
    slots = (*columns.features, *columns.labels)
    # Read by column, because a model may call an input and an output the same.
    reader = ArrowReader([replace(slot, name=slot.columns[0]) for slot in slots], floatx=model["floatx"])
    blocks = (reader.serve(chunk)[0] for chunk in arrow_columns(records, columns.names))
    learner: Learner | None = None
    for arrays in regroup(blocks, settings["batch_rows"]):
        assert isinstance(arrays, dict)
        inputs, targets = (by_slot(part, [arrays[slot.columns[0]] for slot in part]) for part in _parts(columns))
        batch = Batch(inputs, targets, None, arrays_rows(arrays))
        if learner is None:
            learner = load_learner(ModelSource(archive=archive.value, **model))
            learner.prepare(batch, seed=0, rank=0)
            spec = BatchSpec.of(batch).to_json()
        learner.evaluate(batch)
    if learner is not None:
        yield spec, learner.take_metrics()


def _parts(columns: Columns) -> tuple[Any, Any]:
    return columns.features, columns.labels
