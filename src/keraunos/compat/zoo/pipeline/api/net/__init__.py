"""Analytics Zoo's `zoo.pipeline.api.net`: datasets, optimizers, predictors, graphs as layers. Runs on the driver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.pipeline.api.net.graph_net import GraphNet
    from keraunos.compat.zoo.pipeline.api.net.net_load import Net
    from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
    from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
    from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor
    from keraunos.compat.zoo.tfpark.tfnet import TFNet

_HOMES = {
    "GraphNet": "keraunos.compat.zoo.pipeline.api.net.graph_net",
    "Net": "keraunos.compat.zoo.pipeline.api.net.net_load",
    "TFDataset": "keraunos.compat.zoo.tfpark.tf_dataset",
    "TFNet": "keraunos.compat.zoo.tfpark.tfnet",
    "TFOptimizer": "keraunos.compat.zoo.tfpark.tf_optimizer",
    "TFPredictor": "keraunos.compat.zoo.tfpark.tf_predictor",
}

__all__ = ["GraphNet", "Net", "TFDataset", "TFNet", "TFOptimizer", "TFPredictor"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
