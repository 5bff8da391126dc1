"""Analytics Zoo and BigDL by their own names. Runs on the driver; the update rules also where parameters live."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keraunos.compat.zoo.common.nncontext import (
        init_nncontext,
        init_spark_conf,
        init_spark_on_k8s,
        init_spark_on_local,
        init_spark_on_yarn,
        init_spark_standalone,
        stop_spark_standalone,
    )

__all__ = [
    "init_nncontext",
    "init_spark_conf",
    "init_spark_on_k8s",
    "init_spark_on_local",
    "init_spark_on_yarn",
    "init_spark_standalone",
    "stop_spark_standalone",
]


def __getattr__(name: str) -> Any:
    # Executors import rules from below this package and need no Spark context for that.
    if name in __all__:
        return getattr(importlib.import_module("keraunos.compat.zoo.common.nncontext"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
