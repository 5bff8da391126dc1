"""Analytics Zoo's `zoo.tfpark`: TensorFlow graphs trained and used on Spark. Runs on the driver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
    from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
    from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor
    from keraunos.compat.zoo.tfpark.zoo_optimizer import ZooOptimizer

_HOMES = {
    "TFDataset": "tf_dataset",
    "TFOptimizer": "tf_optimizer",
    "TFPredictor": "tf_predictor",
    "ZooOptimizer": "zoo_optimizer",
}

__all__ = ["TFDataset", "TFOptimizer", "TFPredictor", "ZooOptimizer"]


def __getattr__(name: str) -> Any:
    # Executors import modules below this package, and need neither Spark's driver side nor TensorFlow for that.
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
