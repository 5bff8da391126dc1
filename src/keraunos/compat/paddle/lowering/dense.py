"""Layers of plain vectors: fc, selective_fc, addto, concat and the like. Runs on the driver and on workers."""

from __future__ import annotations

import importlib
from typing import Any

import keras

from keraunos.compat.paddle.lowering.activations import activate, softmax
from keraunos.compat.paddle.lowering.arrivals import no_sequence, several_hot, shared_mask, vectors, with_bias
from keraunos.compat.paddle.lowering.call import BAG, Call, Value, lowers
from keraunos.errors import ModelError

ops = keras.ops


@lowers("fc", "mkldnn_fc")
def fc(call: Call) -> Value:
    """Returns the sum over the inputs of `x W`, and the bias."""
    mask = shared_mask(call)
    total = sum(product(call, at, matrix(call, at)) for at in range(len(call.inputs)))
    return Value(with_bias(call, total), mask)


@lowers("selective_fc", applies_activation=True)
def selective_fc(call: Call) -> Value:
    """As fc, with matrices stored transposed, for the columns that the last input selects; the others give 0.

    The activation applies to the selected columns only, for example a softmax.
    """
    selects = bool(call.attributes.get("has_selected_colums", True))
    count = len(call.inputs) - selects
    mask = shared_mask(call, count)
    total = sum(product(call, at, ops.transpose(matrix(call, at, transposed=True))) for at in range(count))
    total = with_bias(call, total)
    if not selects:
        return Value(activate(call.layer.active_type, total, mask), mask)
    picked = call.inputs[count]
    chosen = several_hot(picked, call.layer.size, total.dtype) if picked.kind == BAG else vectors(call, count)
    chosen = ops.cast(chosen > 0, total.dtype)
    if call.layer.active_type == "softmax":
        return Value(softmax(ops.where(chosen > 0, total, ops.full_like(total, -1e30))) * chosen, mask)
    # What is not selected must not reach an activation that may overflow.
    return Value(activate(call.layer.active_type, total * chosen, mask) * chosen, mask)


@lowers("data_norm")
def data_norm(call: Call) -> Value:
    """Columns normalized by statistics of the training data, which the parameter holds."""
    least, over_range, mean, over_deviation, over_decimal = ops.unstack(
        ops.reshape(call.weight(0), (5, call.layer.size)), 5, axis=0
    )
    tensor = vectors(call, 0)
    strategy = call.attributes.get("data_norm_strategy", "z-score")
    if strategy == "min-max":
        tensor = (tensor - least) * over_range
    elif strategy == "decimal-scaling":
        tensor = tensor * over_decimal
    else:
        tensor = (tensor - mean) * over_deviation
    return Value(tensor, call.inputs[0].mask)


@lowers("addto", "mkldnn_addto")
def addto(call: Call) -> Value:
    """Returns the sum of the inputs, and the bias."""
    mask = shared_mask(call)
    return Value(with_bias(call, sum(vectors(call, at) for at in range(len(call.inputs)))), mask)


@lowers("concat", "mkldnn_concat")
def concat(call: Call) -> Value:
    """Returns the inputs side by side."""
    mask = shared_mask(call)
    return Value(ops.concatenate([vectors(call, at) for at in range(len(call.inputs))], axis=-1), mask)


@lowers("trans")
def trans(call: Call) -> Value:
    """Returns the transpose of the whole batch, which must have as many rows as columns."""
    no_sequence(call, "it transposes a batch")
    tensor, size = vectors(call, 0), call.layer.size
    if _only_shapes():
        return Value(tensor)
    rows = tensor.shape[0]
    if rows is not None and rows != size:
        raise ModelError(
            f"Layer {call.layer.name!r} (trans): the transpose of a batch has rows of as many columns as the batch has "
            f"rows, {size} are expected. Received: a batch of {rows} rows. Make the batch size {size}, and the rows a "
            "multiple of it."
        )
    return Value(ops.transpose(tensor))


@lowers("resize")
def resize(call: Call) -> Value:
    """Returns the numbers of the batch in rows of another width."""
    no_sequence(call, "it cuts a batch into other rows")
    tensor, size = vectors(call, 0), call.layer.size
    if _only_shapes():
        # The rows that Keras tries a layer with need not be a multiple of what one new row takes.
        return Value(tensor[:, :1] * ops.ones((1, size), dtype=tensor.dtype))
    rows = tensor.shape[0]
    if rows is not None and rows * tensor.shape[1] % size:
        raise ModelError(
            f"Layer {call.layer.name!r} (resize): the numbers of a batch must fill rows of {size}. "
            f"Received: {rows} rows of {tensor.shape[1]}. Choose a batch size, and a number of rows, that do."
        )
    return Value(ops.reshape(tensor, (-1, size)))


@lowers("featmap_expand")
def featmap_expand(call: Call) -> Value:
    """Returns the input, as often as there are filters: one whole after the other, or each number beside itself."""
    tensor, times = vectors(call, 0), int(call.attributes["num_filters"])
    if call.attributes.get("as_row_vector", True):
        tensor = ops.concatenate([tensor] * times, axis=-1)
    else:
        tensor = ops.repeat(tensor, times, axis=-1)
    return Value(tensor, call.inputs[0].mask)


@lowers("prelu")
def prelu(call: Call) -> Value:
    """Negative numbers times a slope that this many columns in a row share."""
    tensor = vectors(call, 0)
    slopes = ops.repeat(call.weight(0), int(call.attributes.get("partial_sum", 1)))
    return Value(ops.maximum(tensor, 0.0) + slopes * ops.minimum(tensor, 0.0), call.inputs[0].mask)


def matrix(call: Call, at: int, *, transposed: bool = False) -> Any:
    """Returns the weight on an input as a matrix, of which one side is the layer's size."""
    return ops.reshape(call.weight(at), (call.layer.size, -1) if transposed else (-1, call.layer.size))


def product(call: Call, at: int, weight: Any) -> Any:
    """Returns an input times a matrix; for a bag of ids, the sum of the rows that it names."""
    value = call.inputs[at]
    return rows_of(weight, value) if value.kind == BAG else ops.matmul(vectors(call, at), weight)


def rows_of(weight: Any, bag: Value) -> Any:
    """Returns the sum of the rows of a matrix that a bag of ids names."""
    present = ops.cast(bag.tensor >= 0, weight.dtype)[..., None]
    return ops.sum(ops.take(weight, ops.maximum(bag.tensor, 0), axis=0) * present, axis=-2)


def _only_shapes() -> bool:
    """Returns whether Keras asks for shapes alone, with a number of rows that it made up."""
    scope = importlib.import_module("keras.src.backend.common.symbolic_scope")
    return bool(scope.in_symbolic_scope())
