"""Whether a classifier's outputs are probabilities. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.ml.keras import losses
from keraunos.ml.signature import Port, Shape, Signature

logger = logging.getLogger(__name__)

_PROBABILITIES = frozenset({"softmax", "sigmoid", "hard_sigmoid", "sparsemax"})
# What only hands on what it is given, or changes nothing outside of training.
_HANDING_ON = frozenset({"Identity", "Reshape", "Flatten", "Squeeze", "Dropout", "Cast", "ActivityRegularization"})
# Rows to try a model with whose end does not tell: a score that is no probability is outside of [0, 1] for some.
_TRIES = (0.0, 1.0, -1.0, 10.0, -10.0)


def warn_of_scores(model: Any, signature: Signature, rows: Sequence[tuple[Shape, str]]) -> None:
    """Warn where the outputs are no probabilities, and the loss does not know that either.

    `rows` are shape and type of a row of each input, by which a model is tried that does not tell.
    """
    loss = losses.loss_for(model, signature.outputs[0].name, 0)
    if losses.from_logits(loss):
        return
    layer, activation = _end_of(model)
    if activation in _PROBABILITIES or (activation is None and _looks_right(model, signature.inputs, rows)):
        return
    one = signature.outputs[0].shape in ((), (1,))
    how = f"has the activation {activation!r}" if activation else "gives other numbers than from 0 to 1 that sum to 1"
    wanted = "sigmoid" if one else "softmax"
    logger.warning(
        "The outputs of the model %r are no probabilities: its last layer, %r, %s, and the loss %r is without "
        "from_logits=True. Expected: one of both; training and `probabilityCol` go wrong without. Give the layer "
        "activation=%r, or compile the model with loss=keras.losses.%s(from_logits=True).",
        model.name, layer, how, losses.loss_name(loss), wanted, _logit_loss(loss, one=one),
    )  # fmt: skip


def _end_of(model: Any) -> tuple[str, str | None]:
    """The name of the layer that makes the output, and its activation; `None` where that cannot be told."""
    tensors = getattr(model, "outputs", None)
    if not tensors:
        return str(model.name), None
    tensor = tensors[0]
    while True:
        history = tensor._keras_history
        operation = history.operation
        inner = getattr(operation, "_functional", None) or operation
        if hasattr(inner, "_nodes_by_depth"):
            tensor = inner.outputs[history.tensor_index]
            continue
        kind = type(operation)
        if not kind.__module__.startswith("keras."):
            return str(operation.name), None
        nodes = operation._inbound_nodes[history.node_index].input_tensors
        if kind.__name__ in _HANDING_ON and nodes:
            tensor = nodes[0]
            continue
        return str(operation.name), _activation_of(operation)


def _activation_of(operation: Any) -> str | None:
    import keras

    kind = type(operation).__name__
    if kind.lower() in _PROBABILITIES:
        return kind.lower()
    activation = getattr(operation, "activation", None)
    if activation is not None:
        name = str(getattr(activation, "__name__", type(activation).__name__)).lower()
        known = getattr(keras.activations, name, None) is activation
        return name if known or name in _PROBABILITIES else None
    return None


def _looks_right(model: Any, ports: Sequence[Port], rows: Sequence[tuple[Shape, str]]) -> bool:
    """Whether a few rows come out as probabilities; also where the model cannot be tried."""
    import keras

    try:
        inputs = [_tried(shape, dtype) for shape, dtype in rows]
        named = len(ports) > 1
        given: Any = {port.name: array for port, array in zip(ports, inputs, strict=True)} if named else inputs[0]
        outputs = np.asarray(keras.ops.convert_to_numpy(model(given, training=False)), dtype=np.float64)
    except Exception as error:  # noqa: BLE001 - a model that needs other rows is not judged by these
        logger.debug("the model could not be tried: %s", error)
        return True
    rows_of = outputs.reshape(len(outputs), -1)
    inside = bool(((rows_of >= -1e-6) & (rows_of <= 1 + 1e-6)).all())
    return inside and (rows_of.shape[1] == 1 or bool(np.allclose(rows_of.sum(axis=1), 1.0, atol=1e-3)))


def _tried(shape: Shape, dtype: str) -> Any:
    lengths = tuple(each or 1 for each in shape)
    tries = _TRIES if dtype.startswith("float") else (0.0,) * len(_TRIES)
    return np.stack([np.full(lengths, value) for value in tries]).astype("float32" if dtype == "float64" else dtype)


def _logit_loss(loss: Any, *, one: bool) -> str:
    name = losses.loss_name(loss)
    if one or name in losses.BINARY:
        return "BinaryCrossentropy"
    return "SparseCategoricalCrossentropy" if name in losses.SPARSE else "CategoricalCrossentropy"
