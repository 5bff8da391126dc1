"""Analytics Zoo and BigDL by their own names. Runs on the driver; the update rules also where parameters live."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.common.nncontext import (
        ZooContext,
        getOrCreateSparkContext,
        init_nncontext,
        init_spark_conf,
        init_spark_on_k8s,
        init_spark_on_local,
        init_spark_on_yarn,
        init_spark_standalone,
        stop_spark_standalone,
    )

__all__ = [
    "ZooContext",
    "getOrCreateSparkContext",
    "init_nncontext",
    "init_spark_conf",
    "init_spark_on_k8s",
    "init_spark_on_local",
    "init_spark_on_yarn",
    "init_spark_standalone",
    "stop_spark_standalone",
]
# What programs took from here beside that, because it had been imported here.
_ALSO = frozenset(
    {"JTensor", "Sample", "SparkConf", "SparkContext", "get_node_and_core_number", "init_engine", "np", "os"}
)


def __getattr__(name: str) -> Any:
    # Executors import rules from below this package and need no Spark context for that.
    if name in __all__ or name in _ALSO:
        return getattr(importlib.import_module("keraunos.compat.zoo.common.nncontext"), name)
    raise AttributeError(f"module 'zoo' has no attribute {name!r} here.")
