"""`zoo.pipeline.api.keras.regularizers`: penalties on weights, as regularizers of Keras. Runs on the driver.

BigDL adds `l2` times a weight to its gradient, which is half of what a regularizer of Keras with that number adds.
"""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.optim.arguments import float_type, number
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled


def L1L2Regularizer(l1: float, l2: float, bigdl_type: str = "float") -> Any:
    """Both penalties: gradients get `l1` times a weight's sign and `l2` times the weight."""
    float_type(bigdl_type)
    return keras.regularizers.L1L2(number("l1", l1, least=0), number("l2", l2, least=0) / 2)


def L1Regularizer(l1: float, bigdl_type: str = "float") -> Any:
    """Gradients get `l1` times a weight's sign."""
    return L1L2Regularizer(l1, 0.0, bigdl_type)


def L2Regularizer(l2: float, bigdl_type: str = "float") -> Any:
    """Gradients get `l2` times the weight."""
    return L1L2Regularizer(0.0, l2, bigdl_type)


def l1(l1: float = 0.01) -> Any:
    """Gradients get `l1` times a weight's sign."""
    return L1Regularizer(l1)


def l2(l2: float = 0.01) -> Any:
    """Gradients get `l2` times the weight."""
    return L2Regularizer(l2)


def l1l2(l1: float = 0.01, l2: float = 0.01) -> Any:
    """Both."""
    return L1L2Regularizer(l1, l2)
