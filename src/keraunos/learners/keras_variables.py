"""Which of a Keras model's variables travel, and where the ones with a special meaning are. Runs on driver and workers.

The parameters of a model are its trainable variables, then its float state (BatchNorm's moving statistics and the
like). Frozen weights, of whole layers or single ones, are the same everywhere and need not travel; random-number
states and other integers belong to the process that made them.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keraunos.errors import ModelError
from keraunos.parameters import Layout, Vector


def parameter_variables(model: Any) -> list[Any]:
    """The variables in the model's flat vector, in its order."""
    return [*model.trainable_variables, *state_variables(model)]


def state_variables(model: Any) -> list[Any]:
    """The float variables that training moves without a gradient."""
    frozen = _frozen(model)
    return [each for each in model.non_trainable_weights if _is_float(each) and id(each) not in frozen]


def layout_of(model: Any) -> Layout:
    """The layout of the model's flat vector; the model must be built."""
    if not model.built:
        raise ModelError(
            f"The model {model.name!r} must be built before its parameters can be laid out. Received: a model without "
            "variables. Call it once on a batch, or give its first layer an input shape."
        )
    variables = parameter_variables(model)
    wide = any(keras.backend.standardize_dtype(variable.dtype) == "float64" for variable in variables)
    return Layout(
        names=tuple(variable.path for variable in variables),
        shapes=tuple(tuple(int(size) for size in variable.shape) for variable in variables),
        trainable=len(model.trainable_variables),
        dtype="float64" if wide else "float32",
    )


def read_vector(model: Any) -> Vector:
    """The model's parameters as one vector."""
    arrays = [keras.ops.convert_to_numpy(variable.value) for variable in parameter_variables(model)]
    layout = layout_of(model)
    return layout.join([np.asarray(array, dtype=layout.dtype) for array in arrays])


def write_vector(model: Any, vector: Vector) -> None:
    """Set the model's parameters from one vector."""
    layout = layout_of(model)
    if vector.shape != (layout.size,):
        raise ModelError(
            f"The vector for the model {model.name!r} must have {layout.size} elements. Received: shape {vector.shape}."
        )
    for variable, values in zip(parameter_variables(model), layout.split(vector), strict=True):
        variable.assign(values)


def reseed(model: Any, *, seed: int, rank: int) -> None:
    """Give every random-number generator of the model a state of its own for this seed and rank."""
    states = seed_variables(model)
    for variable, value in zip(states, seeds_of(len(states), seed=seed, rank=rank), strict=True):
        variable.assign(np.array([value, 0], dtype=keras.backend.standardize_dtype(variable.dtype)))


def seed_variables(model: Any) -> list[Any]:
    """The states of the model's random-number generators."""
    return [variable for variable in model.non_trainable_variables if variable.name == "seed_generator_state"]


def seeds_of(count: int, *, seed: int, rank: int) -> list[int]:
    """Seeds for the generators of one rank; small enough for every backend's type for seeds, signed ones too."""
    fresh = np.random.SeedSequence([seed % 2**64, rank]).generate_state(count, np.uint32)
    return [int(value) >> 1 for value in fresh]


def learning_rate_variable(model: Any) -> Any | None:
    """The optimizer's learning rate, or `None` where a schedule computes it."""
    named = [variable for variable in innermost(model.optimizer).variables if variable.name == "learning_rate"]
    return named[0] if named else None


def innermost(optimizer: Any) -> Any:
    """The optimizer that steps, where others that scale the loss are around it."""
    while isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer = optimizer.inner_optimizer
    return optimizer


def keeps_averages(model: Any) -> bool:
    """Whether the optimizer keeps moving averages of the weights, which take their place when training is over."""
    return bool(getattr(innermost(model.optimizer), "use_ema", False))


def has_schedule(model: Any) -> bool:
    """Whether the optimizer's learning rate comes from a schedule and so cannot be set."""
    return learning_rate_variable(model) is None


def _is_float(variable: Any) -> bool:
    return "float" in keras.backend.standardize_dtype(variable.dtype)


def _frozen(model: Any) -> set[int]:
    """The weights that could be trained and are not to be. Which they are, Keras does not tell publicly.

    A single frozen weight of a layer that is not Keras's own may still be moved by the layer's code, unless the layer
    has `moves_no_weights`.
    """
    trained = {id(variable) for variable in model.trainable_variables}
    layers = [layer for layer in model._flatten_layers() if not layer.trainable or _moves_no_weights(layer)]
    return {id(variable) for layer in layers for variable in layer._trainable_variables} - trained


def _moves_no_weights(layer: Any) -> bool:
    return type(layer).__module__.startswith("keras.") or bool(getattr(layer, "moves_no_weights", False))
