"""Analytics Zoo's `zoo.pipeline.nnframes`: models in spark.ml's pipelines. Runs on the driver."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import SparkSession, SQLContext

    from keraunos.compat.zoo.pipeline.nnframes.nn_classifier import (
        NNClassifier,
        NNClassifierModel,
        NNEstimator,
        NNModel,
        XGBClassifier,
        XGBClassifierModel,
        XGBRegressor,
        XGBRegressorModel,
    )
    from keraunos.compat.zoo.pipeline.nnframes.nn_image_reader import NNImageReader
    from keraunos.compat.zoo.pipeline.nnframes.nn_image_schema import NNImageSchema, with_origin_column

_HERE = "keraunos.compat.zoo.pipeline.nnframes"
_HOMES = {
    "NNClassifier": f"{_HERE}.nn_classifier",
    "NNClassifierModel": f"{_HERE}.nn_classifier",
    "NNEstimator": f"{_HERE}.nn_classifier",
    "NNImageReader": f"{_HERE}.nn_image_reader",
    "NNImageSchema": f"{_HERE}.nn_image_schema",
    "NNModel": f"{_HERE}.nn_classifier",
    "SQLContext": "pyspark.sql",
    "SparkSession": "pyspark.sql",
    "XGBClassifier": f"{_HERE}.nn_classifier",
    "XGBClassifierModel": f"{_HERE}.nn_classifier",
    "XGBRegressor": f"{_HERE}.nn_classifier",
    "XGBRegressorModel": f"{_HERE}.nn_classifier",
    "with_origin_column": f"{_HERE}.nn_image_schema",
}

# Programs take `np`, `os`, `sys`, `tempfile` and Spark's contexts from here by `import *`.
__all__ = [
    "NNClassifier",
    "NNClassifierModel",
    "NNEstimator",
    "NNImageReader",
    "NNImageSchema",
    "NNModel",
    "SQLContext",
    "SparkSession",
    "XGBClassifier",
    "XGBClassifierModel",
    "XGBRegressor",
    "XGBRegressorModel",
    "np",
    "os",
    "sys",
    "tempfile",
    "with_origin_column",
]


def __getattr__(name: str) -> Any:
    # Executors import modules below this package, and need no Keras for that.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
