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
from keraunos.errors import ColumnError, DataError, JobError, ModelError
from keraunos.job.columns import Slot
from keraunos.job.pixels import Pixels
from keraunos.ml import losses, strings
from keraunos.ml.building import build_sequential, unbuilt_copy
from keraunos.ml.padding import with_length
from keraunos.ml.random_start import drawn_from
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Shape, Signature

FirstRow = Callable[[], Mapping[str, Any] | None]


def built(
    model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], first_row: FirstRow, *, seed: int, backend: str
) -> tuple[Any, Signature]:
    """The model, or a built copy of it whose weights are drawn from `seed`, and its signature.

    `backend` is the framework that is going to train it.
    """
    if model.built and hasattr(model, "inputs"):
        return model, Signature.of(model)
    import keras

    strings.check_taken(model, slots, specs)
    shapes = _complete_shapes(slots, specs, first_row)
    examples = _examples(slots, specs, shapes)
    if model.built:
        return model, Signature.of(model, examples)
    if isinstance(model, keras.Sequential):
        dtype = "float32" if slots[0].kind == "image" else specs[0].dtype
        model = build_sequential(model, shapes[0], dtype, seed=seed, backend=backend)
        return model, Signature.of(model)
    with drawn_from(seed):
        model = unbuilt_copy(model)
        model(examples)
    return model, Signature.of(model, examples)


def example_rows(
    slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature, first_row: FirstRow
) -> list[tuple[Shape, str]]:
    """The shape and the type of a row of each input: the model's own, or else what the columns are."""
    if signature.inputs:
        return [(port.shape, port.dtype) for port in signature.inputs]
    shapes = _complete_shapes(slots, specs, first_row)
    return [(shape, _tensor_dtype(spec.dtype)) for shape, spec in zip(shapes, specs, strict=True)]


def checked_inputs(
    slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature, *, backend: str, floatx: str
) -> tuple[Slot, ...]:
    """The feature slots with the shapes that the model takes, and what its numbers are held against.

    Refuses names that the model does not have, inputs without a column, and shapes that cannot match.
    """
    if not signature.inputs:
        return slots
    ports = _matched(slots, signature.inputs, "featuresCol", "input")
    for slot, spec, port in zip(slots, specs, ports, strict=True):
        strings.check_kind(slot, spec, port)
        found = _flat(spec.shape) if slot.kind == "image" and len(port.shape) == 1 else spec.shape
        if not fits(found, port.shape):
            raise ColumnError(
                f"`featuresCol` does not fit the model's input {port.name!r}. Expected rows of shape "
                f"{_told(port.shape)}. Received: {_columns_told(slot)} with rows of shape {_told(spec.shape)}. "
                f"{_shape_advice(slot, spec.shape, port.shape)}"
            )
    # JAX has no wider whole numbers unless it computes in float64, and cuts them off without a word.
    narrowed = {"int64": "int32", "uint64": "uint32"} if backend == "jax" and floatx != "float64" else {}
    return tuple(
        replace(slot, shape=port.shape, pixels=_pixels_for(slot, port), **_numbers_of(slot, port, narrowed))
        for slot, port in zip(slots, ports, strict=True)
    )


def checked_labels(
    model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature
) -> tuple[Slot, ...]:
    """The label slots with their numbers of classes; refuses what the outputs or the loss cannot be compared with."""
    if not slots:
        return ()
    needed = losses.labelled_outputs(model, [port.name for port in signature.outputs])
    if slots[0].name is None and len(signature.outputs) > 1 and len(needed) == 1:
        slots = (replace(slots[0], name=needed[0]),)
    ports = _matched(slots, signature.outputs, "labelCol", "output", needed)
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


def check_unlabelled(model: Any, examples: Callable[[], Any]) -> None:
    """Refuse a built model for which, without labels, there would be nothing to minimise.

    `examples` gives symbolic inputs for a model that does not know its own.
    """
    from keraunos.learners.loss_parts import adds_loss, has_own_loss
    from keraunos.learners.model_parts import graph_of

    if has_own_loss(model):
        return
    graph = graph_of(model)
    if not adds_loss(model, examples() if graph is None else graph._inputs_struct):
        raise ModelError(
            f"The model {model.name!r} has no loss that it could learn by without labels. Expected, where "
            "labelCol=None: layers that call `add_loss`, or a `train_step` or `compute_loss` of its own. Received: a "
            "model with neither. Give the labels in `labelCol` and compile it with a loss."
        )


def check_weights(label: Any, weight: str | None) -> None:
    """Refuse weights for a model without labels, to which Keras hands none."""
    if label is None and weight is not None:
        raise JobError(
            "`weightCol` weighs rows in a loss that compares with labels. Expected none where labelCol=None. Received: "
            f"{weight!r}. Leave it out, or give the model another input for the weights."
        )


def examples_of(slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], first_row: FirstRow) -> Any:
    """Symbolic inputs of a model that is not told its shapes, as the columns will fill them."""
    return _examples(slots, specs, _complete_shapes(slots, specs, first_row))


def _examples(slots: Sequence[Slot], specs: Sequence[SlotSpec], shapes: Sequence[Shape]) -> Any:
    """Symbolic inputs as the columns will fill them."""
    import keras

    tensors = [
        keras.KerasTensor((None, *shape), dtype=_tensor_dtype(spec.dtype))
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    if slots[0].name is None:
        return tensors[0]
    return {str(slot.name): tensor for slot, tensor in zip(slots, tensors, strict=True)}


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


def _matched(
    slots: tuple[Slot, ...], ports: tuple[Port, ...], parameter: str, kind: str, needed: Sequence[str] | None = None
) -> list[Port]:
    """The port of each slot; those that are `needed`, or all, must have one."""
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
    expected = names if needed is None else needed
    missing = [name for name in expected if name not in given]
    if missing:
        which = "" if len(expected) == len(names) else " that has a loss or metrics"
        raise ColumnError(
            f"`{parameter}` must name every {kind} of the model{which}. Expected {', '.join(map(repr, expected))}. "
            f"Received: {', '.join(map(repr, given))}, without {', '.join(map(repr, missing))}."
        )
    return [ports[names.index(name)] for name in given]


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
    return with_length(slots, [tuple(int(length or 0) for length in shape) for shape in shapes])


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


def _numbers_of(slot: Slot, port: Port, narrowed: Mapping[str, str]) -> dict[str, Any]:
    """What the numbers of an input are held against."""
    if slot.kind != "number" or not (port.ids or "int" in port.dtype):
        return {}
    return {"dtype": narrowed.get(port.dtype, port.dtype), "ids": port.ids}


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
