"""Analytics Zoo's `zoo.tfpark`: TensorFlow graphs trained and used on Spark. Runs on the driver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset

_HOMES = {
    "TFDataset": "tf_dataset",
}

__all__ = ["TFDataset"]


def __getattr__(name: str) -> Any:
    # Executors import modules below this package, and need neither Spark's driver side nor TensorFlow for that.
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
