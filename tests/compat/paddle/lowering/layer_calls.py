"""One lowered layer at a time: rows of any length in, rows out, and gradients, on whatever backend Keras runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np

from keraunos.compat.paddle.lowering.call import DENSE, IDS, Call, Value, layer_type
from keraunos.compat.paddle.lowering.output import finished
from keraunos.compat.paddle.model_config import InputConfig, LayerConfig

Reference = Callable[[Sequence[np.ndarray], Mapping[str, np.ndarray]], Any]


@dataclass(frozen=True)
class Given:
    """What one input gives: an array for each row, of (steps, …) where it is a sequence."""

    rows: Sequence[np.ndarray]
    sequence: bool = True

    @property
    def kind(self) -> str:
        return IDS if self.rows[0].dtype.kind == "i" else DENSE


@dataclass(frozen=True)
class Case:
    """A layer, its inputs and parameters, and what it should give for one row.

    `parameters` are `w0`, `w1` … for the inputs, and `bias`.
    """

    name: str
    type: str
    size: int
    inputs: Sequence[Given]
    reference: Reference
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    active_type: str = ""
    smooth: bool = True
    seed: int | None = None

    @property
    def layer(self) -> LayerConfig:
        inputs = tuple(
            InputConfig(f"in{at}", f"w{at}" if f"w{at}" in self.parameters else None) for at in range(len(self.inputs))
        )
        bias = "bias" if "bias" in self.parameters else None
        return LayerConfig(
            self.name, self.type, self.size, inputs, self.active_type, bias, attributes=dict(self.attributes)
        )

    def with_rows(self, at: int, rows: Sequence[np.ndarray]) -> Case:
        inputs = list(self.inputs)
        inputs[at] = replace(inputs[at], rows=rows)
        return replace(self, inputs=inputs)


def padded(given: Given, padding: int = 0, junk: float = 0.0) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows as one array, and the mask of their steps; `junk` stands where there is no step."""
    if not given.sequence:
        return np.stack(given.rows), None
    steps = max(len(row) for row in given.rows) + padding
    shape = (len(given.rows), steps, *given.rows[0].shape[1:])
    fill = -1 if given.kind == IDS else junk
    full = np.full(shape, fill, given.rows[0].dtype)
    mask = np.zeros(shape[:2], bool)
    for at, row in enumerate(given.rows):
        full[at, : len(row)] = row
        mask[at, : len(row)] = True
    return full, mask


def called(case: Case, arrays: Mapping[str, Any], masks: Sequence[np.ndarray | None]) -> Value:
    """What the layer gives; `arrays` holds `in0` … and the parameters, as tensors or NumPy arrays."""
    values = [
        Value(
            keras.ops.convert_to_tensor(arrays[f"in{at}"]),
            None if mask is None else keras.ops.convert_to_tensor(mask),
            given.kind,
        )
        for at, (given, mask) in enumerate(zip(case.inputs, masks, strict=True))
    ]
    parameters = {name: keras.ops.convert_to_tensor(arrays[name]) for name in case.parameters}
    random = None if case.seed is None else keras.random.SeedGenerator(case.seed)
    call = Call(case.layer, values, parameters, training=True, random=random)
    kind = layer_type(case.type)
    return finished(call, kind.function(call), kind)


def arrays_of(case: Case, padding: int = 0, junk: float = 0.0) -> tuple[dict[str, np.ndarray], list[np.ndarray | None]]:
    """The arrays that `called` takes, in 32 bits, and the masks."""
    pairs = [padded(given, padding, junk) for given in case.inputs]
    arrays = {f"in{at}": array for at, (array, _) in enumerate(pairs)} | dict(case.parameters)
    return {name: _in_32_bits(array) for name, array in arrays.items()}, [mask for _, mask in pairs]


def rows_given(value: Value) -> list[np.ndarray]:
    """What each row gets: its own steps, where it is a sequence."""
    tensor = np.asarray(keras.ops.convert_to_numpy(value.tensor))
    if value.mask is None:
        return list(tensor)
    masks = np.asarray(keras.ops.convert_to_numpy(value.mask)).astype(bool)
    return [row[mask] for row, mask in zip(tensor, masks, strict=True)]


def expected_rows(case: Case, parameters: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
    """What the reference says of each row."""
    told = case.parameters if parameters is None else parameters
    return [
        np.asarray(case.reference([given.rows[at] for given in case.inputs], told))
        for at in range(len(case.inputs[0].rows))
    ]


def with_gradients(
    function: Callable[[Mapping[str, Any]], tuple[Any, Any]], arrays: Mapping[str, np.ndarray]
) -> tuple[Any, dict[str, np.ndarray]]:
    """What a function gives beside a number, and the gradient of the number with respect to each array."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        found, beside = jax.jit(jax.grad(function, has_aux=True))(dict(arrays))
    elif backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tensors = {name: tf.convert_to_tensor(array) for name, array in arrays.items()}
            tape.watch(tensors)
            total, beside = function(tensors)
        found = tape.gradient(total, tensors, unconnected_gradients="zero")
    else:
        import torch

        tensors = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
        total, beside = function(tensors)
        total.backward()
        found = {name: torch.zeros_like(each) if each.grad is None else each.grad for name, each in tensors.items()}
    return beside, {name: np.asarray(keras.ops.convert_to_numpy(each)) for name, each in found.items()}


def values(case: Case, part: str | None = None, padding: int = 0) -> list[np.ndarray]:
    """The rows that a layer gives, or that a further output of it holds."""
    arrays, masks = arrays_of(case, padding)
    kept: list[Value] = []

    def function(given: Mapping[str, Any]) -> tuple[Any, Any]:
        value = called(case, given, masks)
        kept.append(value)
        return value.tensor if part is None else value.parts[part], value.mask

    if keras.backend.backend() == "jax":
        import jax

        # One compilation is faster than one for each operation.
        function = jax.jit(function)
    tensor, mask = function(arrays)
    return rows_given(kept[-1]._replace(tensor=tensor, mask=mask))


def evaluated(
    case: Case, weights: Sequence[np.ndarray] | None = None, padding: int = 0, junk: float = 0.0
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """The rows that a layer gives, and the gradient of all of them, each number of theirs times a weight."""
    arrays, masks = arrays_of(case, padding, junk)
    own = [np.ones_like(row) for row in expected_rows(case)] if weights is None else weights
    fixed = {name: array for name, array in arrays.items() if array.dtype.kind == "i"}
    moving = {name: array for name, array in arrays.items() if name not in fixed}
    kept: list[Value] = []

    def function(given: Mapping[str, Any]) -> tuple[Any, Any]:
        value = called(case, {**fixed, **given}, masks)
        kept.append(value)
        return measured(value, own), (value.tensor, value.mask)

    (tensor, mask), found = with_gradients(function, moving)
    return rows_given(kept[-1]._replace(tensor=tensor, mask=mask)), found


def measured(value: Value, weights: Sequence[np.ndarray]) -> Any:
    """A number made of all that the rows give, each times a weight of its own."""
    full = np.zeros(tuple(value.tensor.shape), np.float32)
    for at, row in enumerate(weights):
        if value.mask is None:
            full[at] = row
        else:
            full[at, : len(row)] = row
    present = value.tensor
    if value.mask is not None:
        shape = (*value.mask.shape, *[1] * (len(value.tensor.shape) - 2))
        present = keras.ops.where(keras.ops.reshape(value.mask, shape), value.tensor, 0.0)
    return keras.ops.sum(present * keras.ops.convert_to_tensor(full))


def differences(function: Callable[[], float], array: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of what a function of the array gives, by moving each element a little; it is put back."""
    found = np.zeros(array.shape)
    for at in np.ndindex(array.shape):
        kept = array[at]
        array[at] = kept + step
        up = function()
        array[at] = kept - step
        found[at] = (up - function()) / (2 * step)
        array[at] = kept
    return found


def _in_32_bits(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
