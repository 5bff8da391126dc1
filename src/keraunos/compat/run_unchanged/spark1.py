"""Calls of Spark 1.x that later releases dropped, for programs written then. Runs on the driver.

A DataFrame had the methods of its RDD; the measures of all classes together were methods of `MulticlassMetrics` that
were called without a class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_OF_THE_RDD = ("flatMap", "map", "mapPartitions")
_OVERALL = ("fMeasure", "precision", "recall")


def install() -> None:
    """Add the calls to Spark's classes in this process. Once is enough."""
    from pyspark.mllib.evaluation import MulticlassMetrics
    from pyspark.sql import DataFrame

    for name in _OF_THE_RDD:
        if not hasattr(DataFrame, name):
            setattr(DataFrame, name, _of_the_rdd(name))
    for name in _OVERALL:
        method = getattr(MulticlassMetrics, name)
        if not hasattr(method, "__wrapped__"):
            setattr(MulticlassMetrics, name, _overall(method))


def _of_the_rdd(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(self.rdd, name)(*arguments, **named)

    method.__doc__ = f"`rdd.{name}`, as Spark 1.x had it."
    return method


def _overall(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def measure(self: Any, label: float | None = None, *arguments: Any, **named: Any) -> Any:
        # Over all classes together, precision, recall and their mean are one number: the accuracy.
        return self.accuracy if label is None else method(self, label, *arguments, **named)

    return measure
