"""Do a Keras model and the columns fit together? Runs on the driver.

A model without shapes is built here, as a copy, from what the columns are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from keraunos.batch import fits
from keraunos.errors import ColumnError, ModelError
from keraunos.job.columns import Slot
from keraunos.ml.fitting import columns_told, complete_shapes, matched, told
from keraunos.ml.keras import losses, strings
from keraunos.ml.keras.building import build_sequential, unbuilt_copy
from keraunos.ml.keras.random_start import drawn_from
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.live_models import Read
from keraunos.ml.schema import SlotSpec
from keraunos.ml.signature import Port, Shape, Signature


def built(model: Any, read: Read, *, seed: int, backend: str) -> tuple[Any, Signature]:
    """The model, or a built copy of it whose weights are drawn from `seed`, and its signature.

    `backend` is the framework that is going to train it.
    """
    if model.built and hasattr(model, "inputs"):
        return model, signature_of(model)
    import keras

    strings.check_taken(model, read.slots, read.specs)
    shapes = complete_shapes(read)
    examples = _examples(read, shapes)
    if model.built:
        return model, signature_of(model, examples)
    if isinstance(model, keras.Sequential):
        dtype = "float32" if read.slots[0].kind == "image" else read.specs[0].dtype
        model = build_sequential(model, shapes[0], dtype, seed=seed, backend=backend)
        return model, signature_of(model)
    with drawn_from(seed):
        model = unbuilt_copy(model)
        model(examples)
    return model, signature_of(model, examples)


def example_rows(read: Read, signature: Signature) -> list[tuple[Shape, str]]:
    """The shape and the type of a row of each input: the model's own, or else what the columns are."""
    if signature.inputs:
        return [(port.shape, port.dtype) for port in signature.inputs]
    shapes = complete_shapes(read)
    return [(shape, _tensor_dtype(spec.dtype)) for shape, spec in zip(shapes, read.specs, strict=True)]


def checked_labels(
    model: Any, slots: tuple[Slot, ...], specs: tuple[SlotSpec, ...], signature: Signature
) -> tuple[Slot, ...]:
    """The label slots with their numbers of classes; refuses what the outputs or the loss cannot be compared with."""
    if not slots:
        return ()
    needed = losses.labelled_outputs(model, [port.name for port in signature.outputs])
    if slots[0].name is None and len(signature.outputs) > 1 and len(needed) == 1:
        slots = (replace(slots[0], name=needed[0]),)
    ports = matched(slots, signature.outputs, "labelCol", "output", needed)
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


def examples_of(read: Read) -> Any:
    """Symbolic inputs of a model that is not told its shapes, as the columns will fill them."""
    return _examples(read, complete_shapes(read))


def _examples(read: Read, shapes: Sequence[Shape]) -> Any:
    """Symbolic inputs as the columns will fill them."""
    import keras

    tensors = [
        keras.KerasTensor((None, *shape), dtype=_tensor_dtype(spec.dtype))
        for shape, spec in zip(shapes, read.specs, strict=True)
    ]
    if read.slots[0].name is None:
        return tensors[0]
    return {str(slot.name): tensor for slot, tensor in zip(read.slots, tensors, strict=True)}


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
            f"{port.name!r} of shape {told(port.shape)} has scores. Received: {columns_told(slot)} with rows of "
            f"shape {told(spec.shape)}. Use categorical_crossentropy for one-hot labels."
        )


def _check_same_shape(slot: Slot, spec: SlotSpec, port: Port, loss: str) -> None:
    if fits(spec.shape, port.shape):
        return
    advice = "Give the model as many output units as the label has numbers."
    if loss in losses.ONE_HOT and spec.shape == ():
        advice = "For a column of class numbers, compile the model with sparse_categorical_crossentropy."
    raise ColumnError(
        f"`labelCol` does not fit the model's output {port.name!r} and the loss {loss!r}. Expected rows of shape "
        f"{told(port.shape)}. Received: {columns_told(slot)} with rows of shape {told(spec.shape)}. {advice}"
    )


def _tensor_dtype(dtype: str) -> str:
    import keras

    return str(keras.config.floatx()) if dtype == "float64" else dtype
