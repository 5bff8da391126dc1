"""Layers that draw random numbers and that Keras has not. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class RReLU(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Multiplies negative values by a slope, drawn per element in training, otherwise the mean.

    Args:
        lower: the smallest slope.
        upper: the largest slope.
        named: name, dtype and the like.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, **named: Any) -> None:
        super().__init__(**named)
        self.lower, self.upper = float(lower), float(upper)
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape: Any) -> None:
        """There are no weights to make."""

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Returns the function's value."""
        slope: Any = (self.lower + self.upper) / 2
        if training:
            slope = keras.random.uniform(
                ops.shape(inputs), self.lower, self.upper, dtype=inputs.dtype, seed=self.seed_generator
            )
        return ops.where(inputs > 0, inputs, inputs * slope)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), "lower": self.lower, "upper": self.upper}


@keras.saving.register_keras_serializable(PACKAGE)
class GaussianSampler(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Draws from normal distributions, of which the two inputs are the means and the logarithms of the variances."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape: Any) -> None:
        """There are no weights to make."""

    def call(self, inputs: Any) -> Any:
        """Returns the numbers that were drawn."""
        mean, log_variance = inputs
        drawn = keras.random.normal(ops.shape(mean), dtype=mean.dtype, seed=self.seed_generator)
        return mean + ops.exp(log_variance * 0.5) * drawn

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the means."""
        return input_shape[0]
