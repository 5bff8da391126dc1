"""Modules that are whole models of Keras: those that were read from a file. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.nn.initialization_method import RandomUniform
from keraunos.compat.zoo.bigdl.nn.module import Layer, Weight
from keraunos.compat.zoo.bigdl.nn.weighted_modules import filters_of_bigdl, filters_of_keras
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

_BIASES = frozenset({"bias", "beta"})
_STATISTICS = frozenset({"moving_mean", "moving_variance", "seed_generator_state"})


class LoadedModule(Layer):
    """A loaded module: it computes, can be trained and returns its weights, but has no inner modules."""

    def __init__(self, model: Any) -> None:
        found = [weight for layer in model.layers for weight in _weights_of(layer)]
        super().__init__(model, found)
        self.lowered([tuple(each.shape[1:]) for each in model.inputs])


def _weights_of(layer: Any) -> Iterator[Weight]:
    """Yields a layer's weights, laid out as BigDL does; those of recurrent cells as Keras does."""
    for variable in layer.weights:
        if variable.name in _STATISTICS:
            continue
        name = "bias" if variable.name in _BIASES else "weight"
        turned: Any = ()
        if variable.name == "kernel" and isinstance(layer, keras.layers.Dense):
            turned = (_transposed, _transposed)
        elif variable.name == "kernel" and isinstance(layer, keras.layers.Conv2D):
            turned = (filters_of_bigdl, filters_of_keras)
        elif variable.name == "kernel" and isinstance(layer, keras.layers.Conv1D):
            turned = _of_steps(tuple(variable.shape))
        yield Weight(name, variable, (1, 1), RandomUniform(), *turned)


def _of_steps(shape: tuple[int, ...]) -> Any:
    return (lambda array: array.reshape(-1, shape[-1]).T, lambda array: array.T.reshape(shape))


def _transposed(array: Array) -> Array:
    return array.T
