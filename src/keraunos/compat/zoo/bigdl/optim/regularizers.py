"""BigDL's regularizers, which programs import from `bigdl.optim.optimizer`, as Keras's. Runs on the driver.

BigDL adds l2 times the weight to the gradient, where Keras adds twice that.
"""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.optim.arguments import float_type, number
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled


def L1L2Regularizer(l1: float, l2: float, bigdl_type: str = "float") -> Any:
    """Returns a penalty of l1 times the absolute weights and l2 / 2 times their squares."""
    float_type(bigdl_type)
    return keras.regularizers.L1L2(number("l1", l1, least=0), number("l2", l2, least=0) / 2)


def L1Regularizer(l1: float, bigdl_type: str = "float") -> Any:
    """Returns a penalty of l1 times the absolute weights."""
    return L1L2Regularizer(l1, 0.0, bigdl_type)


def L2Regularizer(l2: float, bigdl_type: str = "float") -> Any:
    """Returns a penalty of l2 / 2 times the squares of the weights."""
    return L1L2Regularizer(0.0, l2, bigdl_type)
