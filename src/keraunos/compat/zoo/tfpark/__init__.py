"""Analytics Zoo's `zoo.tfpark`: TensorFlow graphs trained and used on Spark. Runs on the driver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.tfpark.estimator import TFEstimator
    from keraunos.compat.zoo.tfpark.model import KerasModel
    from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
    from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
    from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor
    from keraunos.compat.zoo.tfpark.tfnet import TFNet
    from keraunos.compat.zoo.tfpark.zoo_optimizer import ZooOptimizer

_HOMES = {
    "KerasModel": "keraunos.compat.zoo.tfpark.model",
    "TFDataset": "keraunos.compat.zoo.tfpark.tf_dataset",
    "TFEstimator": "keraunos.compat.zoo.tfpark.estimator",
    "TFNet": "keraunos.compat.zoo.tfpark.tfnet",
    "TFOptimizer": "keraunos.compat.zoo.tfpark.tf_optimizer",
    "TFPredictor": "keraunos.compat.zoo.tfpark.tf_predictor",
    "ZooOptimizer": "keraunos.compat.zoo.tfpark.zoo_optimizer",
}

__all__ = ["KerasModel", "TFDataset", "TFEstimator", "TFNet", "TFOptimizer", "TFPredictor", "ZooOptimizer"]


def __getattr__(name: str) -> Any:
    # Executors import modules below this package, and need neither Spark's driver side nor TensorFlow for that.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
