"""Arithmetic on lists of arrays, such as a model's weights. Runs on the driver and on executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Weights = Sequence[Any]


def add_params(param_list_left: Weights, param_list_right: Weights) -> list[Any]:
    """Returns the sum of two lists, array by array."""
    return [left + right for left, right in zip(param_list_left, param_list_right, strict=True)]


def subtract_params(param_list_left: Weights, param_list_right: Weights) -> list[Any]:
    """Returns the first list minus the second, array by array."""
    return [left - right for left, right in zip(param_list_left, param_list_right, strict=True)]


def get_neutral(array_list: Weights) -> list[Any]:
    """Zeros of the same shapes."""
    return [np.zeros_like(array) for array in array_list]


def divide_by(array_list: Weights, num_workers: int) -> list[Any]:
    """Returns each array divided by a number."""
    return [array / num_workers for array in array_list]


def average_and_subtract(base_weights: Weights, deltas: Sequence[Weights]) -> list[Any]:
    """Weights minus the mean of several updates."""
    if not deltas:
        return list(base_weights)
    return [
        base - np.mean(np.stack(each), axis=0, dtype=np.float64).astype(base.dtype)
        for base, each in zip(base_weights, zip(*deltas, strict=True), strict=True)
    ]
