"""Do a model and the columns fit together? Runs on the driver.

A model without shapes is built here, as a copy, from what the columns are.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keraunos.batch import fits
from keraunos.errors import ColumnError, DataError, ModelError
from keraunos.job.columns import Slot
from keraunos.job.pixels import Pixels
from keraunos.ml import losses
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Shape, Signature

FirstRow = Callable[[], Mapping[str, Any] | None]


def built(
    model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], first_row: FirstRow
) -> tuple[Any, Signature]:
    """The model, or a built copy of it, and its signature."""
    if model.built and hasattr(model, "inputs"):
        return model, Signature.of(model)
    import keras

    shapes = _complete_shapes(slots, specs, first_row)
    tensors = [
        keras.KerasTensor((None, *shape), dtype=_tensor_dtype(spec.dtype))
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    examples: Any = tensors[0]
    if slots[0].name is not None:
        examples = {str(slot.name): tensor for slot, tensor in zip(slots, tensors, strict=True)}
    if not model.built:
        model = _unbuilt_copy(model)
        if isinstance(model, keras.Sequential):
            model.build((None, *shapes[0]))
            return model, Signature.of(model)
        model(examples)
    return model, Signature.of(model, examples)


def checked_inputs(slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature) -> tuple[Slot, ...]:
    """The feature slots with the shapes that the model takes.

    Refuses names that the model does not have, inputs without a column, and shapes that cannot match.
    """
    if not signature.inputs:
        return slots
    ports = _matched(slots, signature.inputs, "featuresCol", "input")
    for slot, spec, port in zip(slots, specs, ports, strict=True):
        found = _flat(spec.shape) if slot.kind == "image" and len(port.shape) == 1 else spec.shape
        if not fits(found, port.shape):
            raise ColumnError(
                f"`featuresCol` does not fit the model's input {port.name!r}. Expected rows of shape "
                f"{_told(port.shape)}. Received: {_columns_told(slot)} with rows of shape {_told(spec.shape)}. "
                f"{_shape_advice(slot, spec.shape, port.shape)}"
            )
    return tuple(
        replace(slot, shape=port.shape, pixels=_pixels_for(slot, port)) for slot, port in zip(slots, ports, strict=True)
    )


def checked_labels(
    model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature
) -> tuple[Slot, ...]:
    """The label slots with their numbers of classes; refuses what the outputs or the loss cannot be compared with."""
    ports = _matched(slots, signature.outputs, "labelCol", "output")
    checked = []
    for slot, spec, port in zip(slots, specs, ports, strict=True):
        loss = losses.loss_for(model, port.name, signature.outputs.index(port))
        name = losses.loss_name(loss)
        if name in losses.SPARSE:
            _check_sparse(slot, spec, port, name)
        elif name in losses.ONE_HOT | losses.BINARY | losses.REGRESSION:
            _check_same_shape(slot, spec, port, name)
        checked.append(slot if slot.one_hot else replace(slot, classes=_classes(loss, name, spec, port)))
    return tuple(checked)


def _classes(loss: Any, name: str, spec: SlotSpec, port: Port) -> int | None:
    """How many classes the labels may have; `None` where the loss takes more than class numbers."""
    if name in losses.SPARSE and getattr(loss, "ignore_class", None) is None:
        return port.shape[-1]
    whole = str(spec.dtype).startswith(("int", "uint", "bool"))
    return 2 if name in losses.BINARY and whole else None


def _check_sparse(slot: Slot, spec: SlotSpec, port: Port, loss: str) -> None:
    # An array of any length could be one class number, but is one-hot far more often.
    one_hot = len(spec.shape) == len(port.shape) and spec.shape[-1] != 1
    if one_hot or not fits(spec.shape, port.shape[:-1]):
        raise ColumnError(
            f"`labelCol` does not fit the loss {loss!r}, which takes one class number where the model's output "
            f"{port.name!r} of shape {_told(port.shape)} has scores. Received: {_columns_told(slot)} with rows of "
            f"shape {_told(spec.shape)}. Use categorical_crossentropy for one-hot labels."
        )


def _check_same_shape(slot: Slot, spec: SlotSpec, port: Port, loss: str) -> None:
    if fits(spec.shape, port.shape):
        return
    advice = "Give the model as many output units as the label has numbers."
    if loss in losses.ONE_HOT and spec.shape == ():
        advice = "For a column of class numbers, compile the model with sparse_categorical_crossentropy."
    raise ColumnError(
        f"`labelCol` does not fit the model's output {port.name!r} and the loss {loss!r}. Expected rows of shape "
        f"{_told(port.shape)}. Received: {_columns_told(slot)} with rows of shape {_told(spec.shape)}. {advice}"
    )


def _matched(slots: tuple[Slot, ...], ports: tuple[Port, ...], parameter: str, kind: str) -> list[Port]:
    """The port of each slot."""
    names = [port.name for port in ports]
    if slots[0].name is None:
        if len(ports) == 1:
            return [ports[0]]
        raise ColumnError(
            f"`{parameter}` must be a dict, since the model has several {kind}s: {', '.join(map(repr, names))}. "
            f"Received: {_columns_told(slots[0])}. Write {parameter}={{{names[0]!r}: ..., ...}}."
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
    missing = [name for name in names if name not in given]
    if missing:
        raise ColumnError(
            f"`{parameter}` must name every {kind} of the model. Expected {', '.join(map(repr, names))}. "
            f"Received: {', '.join(map(repr, given))}, without {', '.join(map(repr, missing))}."
        )
    return [ports[names.index(name)] for name in given]


def _unbuilt_copy(model: Any) -> Any:
    import keras

    from keraunos.learners.keras_archive import without_tensorflow

    try:
        with without_tensorflow():
            told = keras.saving.serialize_keras_object(model)
        return keras.saving.deserialize_keras_object(told)
    except Exception as error:
        raise ModelError(
            f"The model {model.name!r} has no shapes yet, and a copy of it to build could not be made: {error} "
            "Expected every layer to have `get_config`. Build the model first, for instance with an Input layer, or "
            "give custom classes in `customObjects`."
        ) from error


def _complete_shapes(slots: Sequence[Slot], specs: Sequence[SlotSpec], first_row: FirstRow) -> list[tuple[int, ...]]:
    shapes: list[Shape] = [spec.shape for spec in specs]
    if not all(spec.complete for spec in specs):
        row = first_row()
        if row is None:
            raise DataError("The DataFrame has no rows to train on. Expected at least one. Received: 0 rows.")
        shapes = [
            spec.shape if spec.complete else _shape_of(row[slot.columns[0]], slot)
            for slot, spec in zip(slots, specs, strict=True)
        ]
    return [tuple(int(length or 0) for length in shape) for shape in shapes]


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


def _tensor_dtype(dtype: str) -> str:
    import keras

    return str(keras.config.floatx()) if dtype == "float64" else dtype


def _columns_told(slot: Slot) -> str:
    noun = "columns" if slot.stacked else "column"
    return f"{noun} {', '.join(map(repr, slot.columns))}"


def _told(shape: Shape) -> str:
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
