"""Arrow batches in, the state of a model's metrics out, for a partition of a DataFrame. Runs on workers.

Spark pickles a reference to `measure_rows` and the plain data that it is given. Rows are streamed: whatever a
partition holds, one batch of it is in memory.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from keraunos.batch import Array, Arrays, Batch, BatchSpec
from keraunos.data.arrow_batches import ArrowReader, by_slot
from keraunos.data.id_range import check_ids
from keraunos.data.image_rows import scaled
from keraunos.data.label_range import check_classes
from keraunos.data.one_hot import one_hot_rows
from keraunos.data.regroup import arrays_rows, regroup
from keraunos.data.row_shape import check_shape
from keraunos.data.row_weights import row_weights
from keraunos.data.sparse_rows import as_dense
from keraunos.job.columns import Columns, Slot
from keraunos.job.training_job import ModelSource
from keraunos.worker import resources
from keraunos.worker.failure import describe_failure
from keraunos.worker.served_models import served_model

RESULT_SCHEMA = "spec string, state binary, failure string"

_WEIGHT = "weight"


def measure_rows(
    settings: Mapping[str, Any], archive: Any, custom_objects: Mapping[str, Any], record_batches: Iterable[Any]
) -> Iterator[Any]:
    """One row: what a batch looks like and the state of the metrics after all of them, or what went wrong.

    There is none where the partition is empty.

    Args:
        settings: `key`, which names the model; `model`, its source without the archive; `columns`; and `batch_rows`.
        archive: has the model's archive as its `value`, as Spark's broadcast variables do.
        custom_objects: custom code that the archive needs.
        record_batches: the rows.
    """
    # A fit may have left this process on one core, which another task's worker may have been left on too.
    resources.unpin()
    found: dict[str, str | bytes | None] = {"spec": None, "state": None, "failure": None}
    try:
        measured = _measured(settings, archive, custom_objects, record_batches)
        if measured is None:
            return
        spec, state = measured
        found |= {"spec": json.dumps(spec.to_json()), "state": state_to_bytes(state)}
    except Exception as error:  # noqa: BLE001 - the driver raises it, as it does with what ends a fit
        found["failure"] = json.dumps(describe_failure(error, []).body())
    types = {"spec": pa.string(), "state": pa.binary(), "failure": pa.string()}
    yield pa.RecordBatch.from_pydict({name: pa.array([value], types[name]) for name, value in found.items()})


def state_to_bytes(state: Sequence[npt.NDArray[np.float64]]) -> bytes:
    """The state of metrics as bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, *state)
    return buffer.getvalue()


def state_from_bytes(content: bytes | bytearray) -> list[npt.NDArray[np.float64]]:
    """The state that `state_to_bytes` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return [arrays[name] for name in arrays.files]


def _measured(
    settings: Mapping[str, Any], archive: Any, custom_objects: Mapping[str, Any], record_batches: Iterable[Any]
) -> tuple[BatchSpec, list[npt.NDArray[np.float64]]] | None:
    model = settings["model"]
    rows = _Rows(Columns.from_json(settings["columns"]), model["floatx"])
    spec, learner = None, None
    for arrays in regroup(map(rows.read, record_batches), settings["batch_rows"]):
        assert isinstance(arrays, dict)
        first = learner is None
        if learner is None:
            learner = served_model(
                f"measure {settings['key']}", lambda: ModelSource(archive=archive.value, **model), custom_objects
            )
        batch = rows.batch(arrays, learner.encoded)
        if first:
            learner.prepare(batch, seed=0, rank=0)
            spec = BatchSpec.of(batch)
        learner.evaluate(batch)
    return None if learner is None or spec is None else (spec, learner.take_metrics())


class _Rows:
    """Reads rows as a fit does: what would end a fit raises here, too."""

    def __init__(self, columns: Columns, floatx: str) -> None:
        self._columns = columns
        self._slots = (*columns.features, *columns.labels)
        self._floatx = floatx
        self._reader = ArrowReader(self._slots, floatx=floatx, allow_nan=columns.allow_nan)
        weight = [] if columns.weight is None else [Slot(None, (columns.weight,))]
        # A weight is float32 whatever the model computes in, so it is read as it is.
        self._weight_reader = ArrowReader(weight, floatx="float64", allow_nan=True)

    def read(self, record_batch: Any) -> dict[str, Array]:
        """The rows of an Arrow batch, whose columns come without names; an array for each slot by its number."""
        record_batch = record_batch.rename_columns(list(self._columns.names))
        first_row = self._reader.rows
        arrays = {}
        for number, (slot, block) in enumerate(zip(self._slots, self._reader.read(record_batch), strict=True)):
            if self._reader.rows > first_row:
                check_shape(slot, block, first_row)
                check_classes(slot, block, first_row)
                check_ids(slot, block, first_row)
            arrays[str(number)] = as_dense(one_hot_rows(slot, block) if slot.one_hot else block)
        if self._columns.weight is not None:
            (block,) = self._weight_reader.read(record_batch)
            arrays[_WEIGHT] = row_weights(self._columns.weight, block, first_row)
        return arrays

    def batch(self, arrays: dict[str, Array], encoded: Callable[[Arrays], Arrays]) -> Batch:
        """A batch as a learner takes it; `encoded` makes its inputs of what the columns give."""
        ready = [scaled(slot, arrays[str(number)], self._floatx) for number, slot in enumerate(self._slots)]
        features, labels = self._columns.features, self._columns.labels
        return Batch(
            inputs=encoded(by_slot(features, ready[: len(features)])),
            targets=by_slot(labels, ready[len(features) :]) if labels else None,
            weights=arrays.get(_WEIGHT),
            rows=arrays_rows(arrays),
        )
