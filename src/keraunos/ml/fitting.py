"""Do a model's inputs and the columns fit together? Runs on the driver."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from keraunos.batch import fits
from keraunos.errors import ColumnError, DataError, JobError
from keraunos.job.columns import Slot
from keraunos.job.pixels import Pixels
from keraunos.ml import strings
from keraunos.ml.live_models import Read
from keraunos.ml.padding import with_length
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Shape, Signature


def checked_inputs(
    slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature, *, backend: str, floatx: str
) -> tuple[Slot, ...]:
    """The feature slots with the shapes that the model takes, and what its numbers are held against.

    Refuses names that the model does not have, inputs without a column, and shapes that cannot match.
    """
    if not signature.inputs:
        return slots
    ports = matched(slots, signature.inputs, "featuresCol", "input")
    for slot, spec, port in zip(slots, specs, ports, strict=True):
        strings.check_kind(slot, spec, port)
        found = _flat(spec.shape) if slot.kind == "image" and len(port.shape) == 1 else spec.shape
        if not fits(found, port.shape):
            raise ColumnError(
                f"`featuresCol` does not fit the model's input {port.name!r}. Expected rows of shape "
                f"{told(port.shape)}. Received: {columns_told(slot)} with rows of shape {told(spec.shape)}. "
                f"{_shape_advice(slot, spec.shape, port.shape)}"
            )
    # JAX has no wider whole numbers unless it computes in float64, and cuts them off without a word.
    narrowed = {"int64": "int32", "uint64": "uint32"} if backend == "jax" and floatx != "float64" else {}
    return tuple(
        replace(slot, shape=port.shape, pixels=_pixels_for(slot, port), **_numbers_of(slot, port, narrowed))
        for slot, port in zip(slots, ports, strict=True)
    )


def check_weights(label: Any, weight: str | None) -> None:
    """Refuse weights for a model without labels, whose loss has nothing to weigh."""
    if label is None and weight is not None:
        raise JobError(
            "`weightCol` weighs rows in a loss that compares with labels. Expected none where labelCol=None. Received: "
            f"{weight!r}. Leave it out, or give the model another input for the weights."
        )


def complete_shapes(read: Read) -> list[tuple[int, ...]]:
    """The shapes of rows with every length known, from the first row where the schema does not tell."""
    shapes: list[Shape] = [spec.shape for spec in read.specs]
    if not all(spec.complete for spec in read.specs):
        row = read.first_row()
        if row is None:
            raise DataError("The DataFrame has no rows to train on. Expected at least one. Received: 0 rows.")
        shapes = [
            spec.shape if spec.complete else _shape_of(row[slot.columns[0]], slot)
            for slot, spec in zip(read.slots, read.specs, strict=True)
        ]
    return with_length(read.slots, [tuple(int(length or 0) for length in shape) for shape in shapes])


def matched(
    slots: tuple[Slot, ...], ports: tuple[Port, ...], parameter: str, kind: str, needed: Sequence[str] | None = None
) -> list[Port]:
    """The port of each slot; those that are `needed`, or all, must have one."""
    names = [port.name for port in ports]
    if slots[0].name is None:
        if len(ports) == 1:
            return [ports[0]]
        raise ColumnError(
            f"`{parameter}` must be a dict, since the model has several {kind}s: {', '.join(map(repr, names))}. "
            f"Received: {columns_told(slots[0])}. Write {parameter}={{{names[0]!r}: ..., ...}}."
        )
    given = [str(slot.name) for slot in slots]
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ColumnError(
                f"`{parameter}` names an {kind} that the model does not have. Expected some of "
                f"{', '.join(map(repr, names))}. Received: {name!r}.{hint}"
            )
    expected = names if needed is None else needed
    missing = [name for name in expected if name not in given]
    if missing:
        which = "" if len(expected) == len(names) else " that has a loss or metrics"
        raise ColumnError(
            f"`{parameter}` must name every {kind} of the model{which}. Expected {', '.join(map(repr, expected))}. "
            f"Received: {', '.join(map(repr, given))}, without {', '.join(map(repr, missing))}."
        )
    return [ports[names.index(name)] for name in given]


def _shape_of(value: Any, slot: Slot) -> Shape:
    if slot.pixels is not None:
        if value is None:
            raise DataError(
                f"Column {slot.columns[0]!r} must hold an image in its first row, whose size an unbuilt model gets. "
                "Received: None. Build the model first, for instance with an Input layer, or drop such rows."
            )
        return slot.pixels.shape_of(value["height"], value["width"], value["nChannels"])
    if hasattr(value, "toArray"):
        return (int(value.size),)
    if isinstance(value, list | tuple):
        return (len(value), *(_shape_of(value[0], slot) if value else ()))
    return ()


def _numbers_of(slot: Slot, port: Port, narrowed: Mapping[str, str]) -> dict[str, Any]:
    """What the numbers of an input are held against."""
    if slot.kind != "number" or not (port.ids or "int" in port.dtype):
        return {}
    return {"dtype": narrowed.get(port.dtype, port.dtype), "ids": port.ids}


def columns_told(slot: Slot) -> str:
    """What an error calls the columns of a slot."""
    noun = "columns" if slot.stacked else "column"
    return f"{noun} {', '.join(map(repr, slot.columns))}"


def told(shape: Shape) -> str:
    """A shape as an error writes it."""
    return f"({', '.join('any' if length is None else str(length) for length in shape)})"


def _pixels_for(slot: Slot, port: Port) -> Pixels | None:
    """How an image becomes the numbers of this input: bytes where it takes whole numbers."""
    pixels = slot.pixels
    if pixels is None or pixels.scale is None or "int" not in port.dtype:
        return pixels
    if pixels != replace(pixels, scale=Pixels().scale, mean=None):
        raise ColumnError(
            f"`pixels` does not fit the model's input {port.name!r}, which takes whole numbers, {port.dtype}. Expected "
            f"pixels as they are. Received: scale={pixels.scale!r} and mean={pixels.mean!r}. Set the scale to None, or "
            "give the model an Input of floats."
        )
    return replace(pixels, scale=None)


def _flat(shape: Shape) -> Shape:
    """The one length of an image that is handed over flat."""
    lengths = [length for length in shape if length is not None]
    return (math.prod(lengths) if len(lengths) == len(shape) else None,)


def _shape_advice(slot: Slot, found: Shape, expected: Shape) -> str:
    if slot.kind == "image":
        return "Read the images in another `size` or `channels`, set `layout` in `pixels`, or change the model's Input."
    if len(found) == 1 and len(expected) > 1:
        return "Start the model with a flat Input and keras.layers.Reshape."
    return "Give columns of that shape, or change the model's Input."
