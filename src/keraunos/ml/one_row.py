"""One row on the driver, without Spark: what `predict` gives to a model. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keraunos.batch import Array, Arrays, fits
from keraunos.data.id_range import check_ids
from keraunos.errors import DataError
from keraunos.job.columns import Slot
from keraunos.ml.fitting import checked_inputs
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Signature


def batch_of_one(row: Any, signature: Signature, *, backend: str, floatx: str, allow_nan: bool) -> Arrays:
    """The inputs for one row, as `transform` would hand them over: an array, or a dict of them by input.

    A row is a spark.ml vector, a list or an array; for a model with several inputs a dict of these by input name. What
    `transform` gives no prediction, or refuses, raises.
    """
    found = _arrays(row, signature, floatx)
    for name, array in found.items() if isinstance(found, dict) else [(None, found)]:
        if not allow_nan and array.dtype.kind == "f" and not np.isfinite(array).all():
            given = row if name is None else row[name]
            raise DataError(
                f"A row must be finite: `transform` gives one with NaN or an infinite value no prediction. Received: "
                f"{given!r}. Set `allowNaN` for a model that handles such values."
            )
    _check_numbers(found, signature, backend, floatx)
    return found


def features_in(signature: Signature) -> int:
    """The length of a model's one flat input; -1, as in spark.ml, where it has another one or does not say."""
    if len(signature.inputs) != 1 or len(signature.inputs[0].shape) != 1:
        return -1
    length = signature.inputs[0].shape[0]
    return -1 if length is None else length


def _check_numbers(arrays: Arrays, signature: Signature, backend: str, floatx: str) -> None:
    """Raise where an id or a whole number is one that the model's input does not take."""
    if not signature.inputs:
        return
    named = arrays if isinstance(arrays, dict) else {signature.inputs[0].name: arrays}
    slots = tuple(Slot(name, (name,)) for name in named)
    specs = tuple(SlotSpec(tuple(array.shape[1:]), array.dtype.name) for array in named.values())
    for slot in checked_inputs(slots, specs, signature, backend=backend, floatx=floatx):
        check_ids(slot, named[str(slot.name)], 0)


def _arrays(row: Any, signature: Signature, floatx: str) -> Arrays:
    ports = {port.name: port for port in signature.inputs}
    if not isinstance(row, Mapping):
        if len(ports) > 1:
            names = ", ".join(map(repr, ports))
            raise DataError(f"A row must be a dict with the inputs {names} of the model. Received: {row!r}.")
        return _array(row, next(iter(ports.values()), None), floatx)
    if ports and set(row) != set(ports):
        raise DataError(
            f"A row must have a value for each input of the model. Expected: {', '.join(map(repr, ports))}. Received: "
            f"{', '.join(map(repr, row))}."
        )
    return {str(name): _array(value, ports.get(name), floatx) for name, value in row.items()}


def _array(value: Any, port: Port | None, floatx: str) -> Array:
    try:
        array: Array = np.asarray(value.toArray() if hasattr(value, "toArray") else value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise DataError(f"A row must be a vector, a list or an array of numbers. Received: {value!r}.")
    if port is not None and not fits(array.shape, port.shape):
        raise DataError(
            f"The row does not fit the model's input {port.name!r}. Expected the shape {port.shape}. Received: "
            f"{array.shape}."
        )
    if array.dtype == np.float64:
        with np.errstate(over="ignore"):
            array = array.astype(floatx)
    return array[np.newaxis]
