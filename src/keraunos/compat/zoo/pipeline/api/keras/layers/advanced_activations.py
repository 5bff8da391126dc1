"""`zoo.pipeline.api.keras.layers.advanced_activations`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers import weighted
from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, computed, initializer, made
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = ["ELU", "LeakyReLU", "SReLU", "ThresholdedReLU"]


def LeakyReLU(alpha: float = 0.01, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a layer that multiplies negative values by `alpha`."""
    return made(keras.layers.LeakyReLU, input_shape, named, negative_slope=float(alpha))


def ELU(alpha: float = 1.0, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a layer that maps negative values to `alpha` times (their exponential less 1)."""
    return made(keras.layers.ELU, input_shape, named, float(alpha))


def ThresholdedReLU(theta: float = 1.0, input_shape: Shape = None, **named: Any) -> Any:
    """Returns a layer that keeps values above `theta` and sets others to zero."""
    return computed("threshold", input_shape, named, th=float(theta), v=0.0)


def SReLU(
    t_left_init: Any = "zero",
    a_left_init: Any = "glorot_uniform",
    t_right_init: Any = "glorot_uniform",
    a_right_init: Any = "one",
    shared_axes: Sequence[int] | None = None,
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns a line of slope 1 in the middle, and of learned slopes left and right of two learned thresholds."""
    inits = [initializer(each) for each in (t_left_init, a_left_init, t_right_init, a_right_init)]
    return made(weighted.SReLU, input_shape, named, inits, shared_axes)
