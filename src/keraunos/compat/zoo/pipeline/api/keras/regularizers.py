"""`zoo.pipeline.api.keras.regularizers`. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.optim.regularizers import L1L2Regularizer, L1Regularizer, L2Regularizer

__all__ = ["L1L2Regularizer", "L1Regularizer", "L2Regularizer", "l1", "l1l2", "l2"]


def l1(l1: float = 0.01) -> Any:
    """Returns a penalty of l1 times the absolute weights."""
    return L1Regularizer(l1)


def l2(l2: float = 0.01) -> Any:
    """Returns a penalty of l2 / 2 times the squares of the weights."""
    return L2Regularizer(l2)


def l1l2(l1: float = 0.01, l2: float = 0.01) -> Any:
    """Returns both."""
    return L1L2Regularizer(l1, l2)
