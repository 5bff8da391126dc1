"""Columns of strings, and the inputs that take them. Runs on the driver."""

from __future__ import annotations

from keraunos.errors import ColumnError
from keraunos.job.columns import Slot
from keraunos.ml.schema import ACCEPTED, ENCODE_STRINGS, STRING, SlotSpec
from keraunos.ml.signature import Port


def check_kind(slot: Slot, spec: SlotSpec, port: Port) -> None:
    """Refuse strings where a model takes numbers, and numbers where it takes strings."""
    if (spec.dtype == STRING) == (port.dtype == STRING):
        return
    column = slot.columns[0]
    if spec.dtype == STRING:
        raise ColumnError(refusal(column, f"the model's input {port.name!r} takes numbers, {port.dtype}"))
    raise ColumnError(
        f"`featuresCol` does not fit the model's input {port.name!r}, which takes strings. Expected a column of "
        f"strings or of binary values. Received: column {column!r} of numbers, {spec.dtype}. Cast the column, as with "
        f"df.withColumn({column!r}, df[{column!r}].cast('string'))."
    )


def refusal(column: str, why: str) -> str:
    """What an error says of a column of strings that nothing reads."""
    return (
        f"`featuresCol` names column {column!r}, which holds strings, but {why}. Expected {ACCEPTED}. Received: "
        f"string. {ENCODE_STRINGS} Or begin the model with a layer such as keras.layers.TextVectorization."
    )
