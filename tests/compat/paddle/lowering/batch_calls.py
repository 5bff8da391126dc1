"""One lowered layer on one batch, beside a reference in NumPy that knows nothing of Keras."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from keraunos.compat.paddle.lowering.call import BAG, DENSE, IDS, Call, Value, layer_type
from keraunos.compat.paddle.lowering.keras_layers import PaddleLayer
from keraunos.compat.paddle.lowering.output import finished
from keraunos.compat.paddle.model_config import InputConfig, LayerConfig, ParameterConfig, layer_to_json


@dataclass(frozen=True)
class Arrival:
    """What one input of a layer brings: an array, and for sequences how many steps each row has."""

    array: np.ndarray
    lengths: tuple[int, ...] = ()
    kind: str = DENSE
    settings: Mapping[str, Any] = field(default_factory=dict)
    differentiable: bool = True

    @property
    def mask(self) -> np.ndarray | None:
        return np.arange(self.array.shape[1]) < np.array(self.lengths)[:, None] if self.lengths else None


@dataclass(frozen=True)
class BatchCase:
    """A layer with its inputs and parameters (`w0` … for the inputs, and `bias`), and the reference for its output."""

    name: str
    type: str
    size: int
    inputs: Sequence[Arrival]
    reference: Callable[[Sequence[np.ndarray], Mapping[str, np.ndarray]], np.ndarray]
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operators: Sequence[Mapping[str, Any]] = ()
    active_type: str = ""
    training: bool = True
    smooth: bool = True

    @property
    def layer(self) -> LayerConfig:
        inputs = tuple(
            InputConfig(f"in{at}", f"w{at}" if f"w{at}" in self.parameters else None, settings=dict(each.settings))
            for at, each in enumerate(self.inputs)
        )
        bias = "bias" if "bias" in self.parameters else None
        return LayerConfig(
            self.name, self.type, self.size, inputs, self.active_type, bias, operators=tuple(self.operators),
            attributes=dict(self.attributes),
        )  # fmt: skip

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All that the output depends on, in 32 bits."""
        told = {f"in{at}": each.array for at, each in enumerate(self.inputs)} | dict(self.parameters)
        return {name: each.astype(np.int32 if each.dtype.kind == "i" else np.float32) for name, each in told.items()}

    @property
    def masks(self) -> list[np.ndarray | None]:
        return [each.mask for each in self.inputs]

    def expected(self) -> np.ndarray:
        return np.asarray(self.reference([each.array for each in self.inputs], self.parameters))

    def moving(self) -> list[str]:
        """The names of the arrays that there is a gradient for."""
        inputs = [f"in{at}" for at, each in enumerate(self.inputs) if each.kind == DENSE and each.differentiable]
        return inputs + [name for name in self.parameters if name not in STATISTICS.get(self.type, ())]

    def array(self, name: str) -> np.ndarray:
        return self.inputs[int(name[2:])].array if name.startswith("in") else self.parameters[name]


STATISTICS = {"batch_norm": ("w1", "w2"), "data_norm": ("w0",)}


def dense(*shape: int, seed: int = 0, lengths: tuple[int, ...] = (), scale: float = 1.0, **settings: Any) -> Arrival:
    """Random numbers; `settings` belong to the input."""
    return Arrival(np.random.default_rng(seed).normal(size=shape) * scale, lengths, settings=settings)


def between(low: float, high: float, *shape: int, seed: int = 0, lengths: tuple[int, ...] = ()) -> Arrival:
    return Arrival(np.random.default_rng(seed).uniform(low, high, size=shape), lengths)


def ids(*numbers: Any, lengths: tuple[int, ...] = (), **settings: Any) -> Arrival:
    return Arrival(np.array(numbers), lengths, IDS, settings)


def bag(*rows: Any, **settings: Any) -> Arrival:
    return Arrival(np.array(rows), (), BAG, settings)


def weight(*shape: int, seed: int = 7, scale: float = 0.5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape) * scale


def called(case: BatchCase, arrays: Mapping[str, Any]) -> tuple[Value, Call]:
    """What the layer gives of arrays under the names of the case's own; and the call, for what it moved."""
    tensor = keras.ops.convert_to_tensor
    values = [
        Value(tensor(arrays[f"in{at}"]), None if mask is None else tensor(mask), each.kind)
        for at, (each, mask) in enumerate(zip(case.inputs, case.masks, strict=True))
    ]
    parameters = {name: tensor(arrays[name]) for name in case.parameters}
    call = Call(case.layer, values, parameters, training=case.training, random=None)
    kind = layer_type(case.type)
    return finished(call, kind.function(call), kind), call


def computed(case: BatchCase, weights: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What the layer gives, and the gradients of its sum under weights."""
    still = {name: each for name, each in case.arrays.items() if name not in case.moving()}
    moving = {name: each for name, each in case.arrays.items() if name in case.moving()}

    own = keras.ops.convert_to_tensor(weights.astype(np.float32))

    def total(arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        output = called(case, {**still, **arrays})[0].tensor
        return keras.ops.sum(keras.ops.cast(output, "float32") * own), output

    return gradients(total, moving)


def gradients(
    function: Callable[[Mapping[str, Any]], tuple[Any, Any]], arrays: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What else a function gives, and the gradients of its number, on the backend that Keras has."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        (_, output), found = jax.jit(jax.value_and_grad(function, has_aux=True))(dict(arrays))
    elif backend == "tensorflow":
        import tensorflow as tf

        variables = {name: tf.Variable(each) for name, each in arrays.items()}
        with tf.GradientTape() as tape:
            number, output = function({name: tf.convert_to_tensor(each) for name, each in variables.items()})
        found = tape.gradient(number, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        found = {name: tf.convert_to_tensor(each) for name, each in found.items()}
    else:
        import torch

        tensors = {name: torch.tensor(each, requires_grad=True) for name, each in arrays.items()}
        number, output = function(tensors)
        if number.requires_grad:
            number.backward()
        found = {name: torch.zeros_like(each) if each.grad is None else each.grad for name, each in tensors.items()}
    as_array = keras.ops.convert_to_numpy
    return as_array(output), {name: as_array(each) for name, each in found.items()}


def differences(function: Callable[[], float], array: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of what a function of the array gives, by moving each number a little; it is put back."""
    found = np.zeros(array.shape)
    for at in np.ndindex(array.shape):
        kept = array[at]
        array[at] = kept + step
        up = function()
        array[at] = kept - step
        found[at] = (up - function()) / (2 * step)
        array[at] = kept
    return found


def symbolic_shapes(case: BatchCase) -> list[tuple[int | None, ...]]:
    """The shapes that Keras works out for a layer in a model, with a number of rows that it does not know."""
    inputs = []
    for each, mask in zip(case.inputs, case.masks, strict=True):
        shape = [None if mask is not None and at == 0 else side for at, side in enumerate(each.array.shape[1:])]
        inputs.append(keras.Input(shape, dtype="float32" if each.kind == DENSE else "int32"))
        inputs += [] if mask is None else [keras.Input((None,), dtype="bool")]
    told = [ParameterConfig(name, each.size, each.shape, initial_std=0.0) for name, each in case.parameters.items()]
    layer = PaddleLayer(
        layer_to_json(case.layer), [vars(each) for each in told], [],
        [(each.kind, bool(each.lengths)) for each in case.inputs],
    )  # fmt: skip
    outputs = layer(inputs)
    return [tuple(each.shape) for each in (outputs if isinstance(outputs, list) else [outputs])]
