"""Rows in, predictions out. Runs on workers, inside the Arrow function that `transform` puts into a query.

The model is loaded once in a Python worker and kept for the next tasks. Rows are regrouped across Arrow batches so
that the model is compiled for one shape only. A row with a null gets a null prediction, and so does one with NaN or an
infinite value unless the model was fitted with such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from keraunos.batch import Arrays, fits
from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.id_range import check_ids
from keraunos.data.image_rows import as_inputs
from keraunos.data.regroup import arrays_rows, first_rows, regroup
from keraunos.data.sparse_rows import Positions
from keraunos.errors import DataError
from keraunos.formats.registry import format_named
from keraunos.job.columns import Slot
from keraunos.job.model_formats import KERAS
from keraunos.job.training_job import ModelSource
from keraunos.learners.learner import Learner
from keraunos.ml.rendering import Rendering, field_name
from keraunos.ml.signature import Port
from keraunos.worker import resources
from keraunos.worker.served_models import served_model


@dataclass(frozen=True)
class Serving:
    """What a worker must know besides the model's archive; `key` names the model in the worker's cache.

    `format` is that of the archive, and `home` that of a registered format. With `allow_nan` the model also sees rows
    with values that are not finite. `trusted` are the modules that the archive may name.
    """

    key: str
    backend: str
    floatx: str
    slots: tuple[Slot, ...]
    columns: tuple[str, ...]
    inputs: tuple[Port, ...]
    batch_rows: int
    rendering: Rendering
    format: str = KERAS
    allow_nan: bool = True
    trusted: tuple[str, ...] = ()
    home: str | None = None


def predictions(
    batches: Iterable[Any], serving: Serving, archive: Callable[[], bytes], custom_objects: Mapping[str, Any]
) -> Iterator[Any]:
    """A struct of predictions for every row, in the rows' order.

    Args:
        batches: for each Arrow batch its columns, in the order of `serving.columns`.
        serving: what to do.
        archive: gives the model's archive; called only where the model is not yet here.
        custom_objects: custom code that the archive needs.
    """
    # A fit may have left this process on one core, which another task's worker may have been left on too.
    resources.unpin()
    reader = ArrowReader(serving.slots, floatx=serving.floatx, allow_nan=serving.allow_nan)
    gaps = _Gaps()
    kind = format_named(serving.format, serving.home)

    def complete_rows() -> Iterator[Arrays]:
        for columns in batches:
            first_row = reader.rows
            inputs, incomplete = reader.serve(dict(zip(serving.columns, columns, strict=True)))
            gaps.expect(incomplete)
            if arrays_rows(inputs):
                _check_rows(serving, inputs, first_row, np.flatnonzero(~incomplete))
                yield inputs

    empty = None
    for inputs in regroup(complete_rows(), serving.batch_rows):
        learner = _learner(serving, archive, custom_objects)
        rows = arrays_rows(inputs)
        encoded = learner.encoded(as_inputs(serving.slots, inputs, serving.floatx))
        given = kind.as_served(encoded, serving.batch_rows)
        outputs = learner.predict(given)
        rendered = _struct(serving.rendering.arrays(first_rows(outputs, rows)))
        empty = rendered.slice(0, 0)
        yield gaps.fill(rendered)
    trailing = gaps.rest()
    if trailing:
        yield pa.nulls(trailing, _arrow_type(serving) if empty is None else empty.type)


def _learner(serving: Serving, archive: Callable[[], bytes], custom_objects: Mapping[str, Any]) -> Learner:
    def source() -> ModelSource:
        return ModelSource(archive(), serving.backend, serving.floatx, serving.format, serving.trusted, serving.home)

    return served_model(serving.key, source, custom_objects)


class _Gaps:
    """Puts nulls back where rows were left out; outputs come later than the rows, and in other portions."""

    def __init__(self) -> None:
        self._incomplete: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def expect(self, incomplete: npt.NDArray[np.bool_]) -> None:
        """More rows came in; those marked have no output."""
        self._incomplete = np.concatenate([self._incomplete, incomplete])

    def fill(self, outputs: Any) -> Any:
        """The outputs of the next complete rows with nulls between them."""
        count = len(outputs)
        if not self._incomplete[:count].any():
            self._incomplete = self._incomplete[count:]
            return outputs
        end = int(np.flatnonzero(~self._incomplete)[count - 1]) + 1
        incomplete, self._incomplete = self._incomplete[:end], self._incomplete[end:]
        return outputs.take(pa.array(np.cumsum(~incomplete) - 1, mask=incomplete))

    def rest(self) -> int:
        """The rows behind the last complete one."""
        return len(self._incomplete)


def _check_rows(serving: Serving, inputs: Arrays, first_row: int, kept: Positions) -> None:
    for slot in serving.slots:
        port = _port_of(slot, serving.inputs)
        array = inputs[slot.name] if isinstance(inputs, dict) and slot.name is not None else inputs
        if isinstance(array, dict):
            continue
        check_ids(slot, array, first_row, kept)
        if port is None:
            continue
        if not fits(array.shape[1:], port.shape):
            raise DataError(
                f"Column {', '.join(map(repr, slot.columns))} does not fit the model's input {port.name!r}. Expected "
                f"rows of shape {port.shape}. Received: rows of shape {array.shape[1:]}."
            )


def _port_of(slot: Slot, ports: tuple[Port, ...]) -> Port | None:
    if slot.name is None:
        return ports[0] if len(ports) == 1 else None
    return next((port for port in ports if port.name == slot.name), None)


def _struct(arrays: list[Any]) -> Any:
    return pa.StructArray.from_arrays(arrays, names=[field_name(i) for i in range(len(arrays))])


def struct_type(rendering: Rendering) -> Any:
    """What the Arrow function returns, as Spark names it."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field_name(i), each) for i, each in enumerate(rendering.struct_types())])


def _arrow_type(serving: Serving) -> Any:
    """The type of the struct where there was no output to take it from."""
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(struct_type(serving.rendering))
