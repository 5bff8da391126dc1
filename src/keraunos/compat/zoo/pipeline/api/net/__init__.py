"""Analytics Zoo's `zoo.pipeline.api.net`: the names under which the 2018 API knew datasets. Runs on the driver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
    from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
    from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor

_HOMES = {
    "TFDataset": "keraunos.compat.zoo.tfpark.tf_dataset",
    "TFOptimizer": "keraunos.compat.zoo.tfpark.tf_optimizer",
    "TFPredictor": "keraunos.compat.zoo.tfpark.tf_predictor",
}

__all__ = ["TFDataset", "TFOptimizer", "TFPredictor"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
