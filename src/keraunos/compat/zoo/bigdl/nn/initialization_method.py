"""`bigdl.nn.initialization_method`: how the weights of BigDL's modules begin. Runs on the driver."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim.arguments import float_type
from keraunos.compat.zoo.tensorflow_mode import tensorflow_2
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "BilinearFiller",
    "ConstInitMethod",
    "InitializationMethod",
    "MsraFiller",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "Xavier",
    "Zeros",
]


class InitializationMethod(ABC):
    """Makes the first values of a weight."""

    def __init__(self, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)

    @abstractmethod
    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values of a weight with these numbers of inputs and outputs."""


class Zeros(InitializationMethod):
    """All zeros."""

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        return np.zeros(shape, dtype=np.float32)


class Ones(InitializationMethod):
    """All ones."""

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        return np.ones(shape, dtype=np.float32)


class ConstInitMethod(InitializationMethod):
    """One number everywhere."""

    def __init__(self, value: float, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.value = float(value)

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        return np.full(shape, self.value, dtype=np.float32)


class RandomUniform(InitializationMethod):
    """Uniform between two bounds, in either order; without them, within 1/sqrt(inputs) of zero."""

    def __init__(self, upper: float | None = None, lower: float | None = None, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        if (upper is None) != (lower is None):
            raise JobError(f"RandomUniform must be given both bounds or none. Received: {upper!r} and {lower!r}.")
        self.bounds = None if upper is None or lower is None else sorted((float(upper), float(lower)))

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        bound = 1.0 / math.sqrt(max(fan_in, 1))
        low, high = self.bounds or (-bound, bound)
        return _uniform(low, high, shape)


class RandomNormal(InitializationMethod):
    """Normal, of a mean and a standard deviation."""

    def __init__(self, mean: float, stdv: float, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.mean, self.stdv = float(mean), float(stdv)

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        return _normal(self.mean, self.stdv, shape)


class Xavier(InitializationMethod):
    """Uniform within sqrt(6 / (inputs + outputs)) of zero."""

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        bound = math.sqrt(6.0 / (fan_in + fan_out))
        return _uniform(-bound, bound, shape)


class MsraFiller(InitializationMethod):
    """Normal, of a variance of 2 divided by the inputs, or by the mean of inputs and outputs."""

    def __init__(self, varianceNormAverage: bool = True, bigdl_type: str = "float") -> None:
        super().__init__(bigdl_type)
        self.average = bool(varianceNormAverage)

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        count = (fan_in + fan_out) / 2 if self.average else fan_in
        return _normal(0.0, math.sqrt(2.0 / count), shape)


class BilinearFiller(InitializationMethod):
    """The coefficients of bilinear interpolation, in each filter."""

    def values(self, shape: Sequence[int], fan_in: int, fan_out: int) -> Array:
        """Returns the values."""
        rows, columns = shape[-2:]
        if len(shape) < 4 or rows != columns:
            raise JobError(f"BilinearFiller is for square filters. Received: a weight of the shape {tuple(shape)}.")
        factor = (rows + 1) // 2
        center = factor - 1 if rows % 2 else factor - 0.5
        line = 1 - np.abs(np.arange(rows) - center) / factor
        return np.broadcast_to(np.outer(line, line), shape).astype(np.float32)


def _uniform(low: float, high: float, shape: Sequence[int]) -> Array:
    return _drawn(keras.initializers.RandomUniform(low, high), shape)


def _normal(mean: float, deviation: float, shape: Sequence[int]) -> Array:
    return _drawn(keras.initializers.RandomNormal(mean, deviation), shape)


def _drawn(initializer: Any, shape: Sequence[int]) -> Array:
    with tensorflow_2():
        return np.asarray(keras.ops.convert_to_numpy(initializer(tuple(shape), dtype="float32")))
