"""Records in, the state of a model's metrics out, for a partition of an RDD. Runs on workers.

Spark pickles a reference to `measure_records` and the plain data that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from keraunos.batch import Array, Batch, BatchSpec
from keraunos.data.arrow_batches import ArrowReader, by_slot
from keraunos.data.label_range import check_classes
from keraunos.data.one_hot import one_hot_rows
from keraunos.data.records import arrow_columns
from keraunos.data.regroup import arrays_rows, regroup
from keraunos.data.sparse_rows import as_dense
from keraunos.formats.registry import load_learner
from keraunos.job.columns import Columns, Slot
from keraunos.job.training_job import ModelSource
from keraunos.learners.learner import Learner


def measure_records(
    settings: Mapping[str, Any], archive: Any, custom_objects: Mapping[str, Any], records: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """What a batch looks like and the state of the metrics after all batches; nothing where there are no records."""
    columns = Columns.from_json(settings["columns"])
    model = settings["model"]
    slots = (*columns.features, *columns.labels)
    weight = () if columns.weight is None else (Slot(columns.weight, (columns.weight,)),)
    # Read by column, because a model may call an input and an output the same.
    by_column = [replace(slot, name=slot.columns[0]) for slot in (*slots, *weight)]
    reader = ArrowReader(by_column, floatx=model["floatx"], allow_nan=True)
    blocks = (reader.serve(chunk)[0] for chunk in arrow_columns(records, columns.names))
    learner: Learner | None = None
    seen = 0
    for arrays in regroup(blocks, settings["batch_rows"]):
        assert isinstance(arrays, dict)
        first = learner is None
        if learner is None:
            learner = load_learner(ModelSource(archive=archive.value, **model), custom_objects)
        inputs = learner.encoded(by_slot(columns.features, [arrays[slot.columns[0]] for slot in columns.features]))
        targets = by_slot(columns.labels, [_target(slot, arrays[slot.columns[0]], seen) for slot in columns.labels])
        weights = None if columns.weight is None else arrays[columns.weight]
        batch = Batch(inputs, targets, weights, arrays_rows(arrays))
        if first:
            learner.prepare(batch, seed=0, rank=0)
            spec = BatchSpec.of(batch).to_json()
        learner.evaluate(batch)
        seen += batch.rows
    if learner is not None:
        yield spec, learner.take_metrics()


def _target(slot: Slot, labels: Array, first_row: int) -> Array:
    """Labels as the model is to see them."""
    check_classes(slot, labels, first_row)
    return as_dense(one_hot_rows(slot, labels)) if slot.one_hot else labels
