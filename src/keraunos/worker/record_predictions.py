"""Records in, predictions out, for a partition of an RDD. Runs on workers.

Spark pickles a reference to `predict_records` and the plain data that it is given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keraunos.batch import Arrays
from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.records import arrow_columns
from keraunos.data.regroup import arrays_rows, first_rows, regroup
from keraunos.errors import DataError
from keraunos.formats.registry import format_named
from keraunos.job.columns import Columns
from keraunos.job.training_job import ModelSource
from keraunos.worker import resources
from keraunos.worker.served_models import served_model


def predict_records(
    settings: Mapping[str, Any], archive: Any, custom_objects: Mapping[str, Any], records: Iterator[Any]
) -> Iterator[Any]:
    """One prediction a record, in their order.

    Args:
        settings: `key`, which names the model; `model`, its source without the archive; `columns`; and `batch_rows`.
        archive: has the model's archive as its `value`, as Spark's broadcast variables do.
        custom_objects: custom code that the archive needs.
        records: see `keraunos.data.records`.
    """
    resources.unpin()
    columns = Columns.from_json(settings["columns"])
    model = settings["model"]
    kind = format_named(model["format"], model["home"])
    reader = ArrowReader(columns.features, floatx=model["floatx"], allow_nan=True)
    blocks = (reader.serve(chunk)[0] for chunk in arrow_columns(records, columns.names))
    for inputs in regroup(blocks, settings["batch_rows"]):
        learner = served_model(
            str(settings["key"]), lambda: ModelSource(archive=archive.value, **model), custom_objects
        )
        rows = arrays_rows(inputs)
        given = kind.as_served(learner.encoded(inputs), settings["batch_rows"])
        outputs = learner.predict(given)
        _check(outputs, arrays_rows(given))
        yield from _by_record(first_rows(outputs, rows))


def predict_kept(
    settings: Mapping[str, Any], archive: Any, custom_objects: Mapping[str, Any], pairs: Iterator[tuple[Any, Any]]
) -> Iterator[tuple[Any, Any]]:
    """The same for pairs of anything and a record, which become pairs of that and the prediction.

    Where the record is `None`, so is the prediction.
    """
    waiting: deque[tuple[Any, bool]] = deque()

    def records() -> Iterator[Any]:
        for kept, record in pairs:
            waiting.append((kept, record is not None))
            if record is not None:
                yield record

    for prediction in predict_records(settings, archive, custom_objects, records()):
        while not waiting[0][1]:
            yield waiting.popleft()[0], None
        yield waiting.popleft()[0], prediction
    yield from ((kept, None) for kept, _ in waiting)


def _check(outputs: Arrays, rows: int) -> None:
    for each in outputs.values() if isinstance(outputs, dict) else [outputs]:
        if np.ndim(each) == 0 or len(each) != rows:
            raise DataError(
                f"An output of the model must have one entry a record. Expected: {rows} entries. "
                f"Received: an output of shape {np.shape(each)}."
            )


def _by_record(outputs: Arrays) -> Iterator[Any]:
    if isinstance(outputs, dict):
        return ([np.asarray(each) for each in row] for row in zip(*outputs.values(), strict=True))
    return map(np.asarray, outputs)
