"""`zoo.pipeline.api.keras.layers.noise`. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, made
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["GaussianDropout", "GaussianNoise"]


def GaussianNoise(sigma: float, input_shape: Shape = None, **named: Any) -> Any:
    """Normal noise while training."""
    return made(keras.layers.GaussianNoise, input_shape, named, float(sigma))


def GaussianDropout(p: float, input_shape: Shape = None, **named: Any) -> Any:
    """Elements times normal noise of mean 1 while training."""
    return made(keras.layers.GaussianDropout, input_shape, named, float(p))
