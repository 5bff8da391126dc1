"""Calls of Spark 1.x that later releases removed, for old programs. Runs on the driver.

A DataFrame had the methods of its RDD; the measures of all classes together were methods of `MulticlassMetrics` that
were called without a class; and the stages of spark.ml took the vectors of spark.mllib, for there were no others.
Elephas's own example measures predictions that are the scores of all classes: they count as the class of the largest.
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
    if not getattr(MulticlassMetrics.__init__, "takes_scores", False):
        MulticlassMetrics.__init__ = _with_classes(MulticlassMetrics.__init__)
    from pyspark.ml.wrapper import JavaEstimator, JavaTransformer

    for stage, name in ((JavaEstimator, "_fit"), (JavaTransformer, "_transform")):
        method = getattr(stage, name)
        if not getattr(method, "takes_old_vectors", False):  # Spark's own decorators have left a `__wrapped__`
            setattr(stage, name, _with_vectors_of_today(method))


def classes_of(pair: Any) -> tuple[Any, ...]:
    """Returns a prediction and a label, with the class of the largest score for scores. Runs on executors."""
    return (*map(_class_of, pair[:2]), *pair[2:])


def _class_of(value: Any) -> Any:
    if not hasattr(value, "__len__"):
        return value
    scores = [float(each) for each in value]
    return float(scores.index(max(scores)))


def _with_classes(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def called(self: Any, predictionAndLabels: Any) -> None:
        init(self, predictionAndLabels.map(classes_of))

    vars(called)["takes_scores"] = True
    return called


def _of_the_rdd(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(self.rdd, name)(*arguments, **named)

    method.__doc__ = f"`rdd.{name}`, as Spark 1.x had it."
    return method


def _with_vectors_of_today(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(self: Any, dataset: Any) -> Any:
        return method(self, _converted(self, dataset))

    vars(called)["takes_old_vectors"] = True
    return called


def _converted(stage: Any, dataset: Any) -> Any:
    """Returns the rows, with spark.mllib's vectors as spark.ml's in the columns that the stage reads."""
    from pyspark.mllib.linalg import VectorUDT
    from pyspark.mllib.util import MLUtils

    read: set[str] = set()
    for name in ("inputCol", "inputCols", "featuresCol"):
        if stage.hasParam(name) and stage.isDefined(name):
            value = stage.getOrDefault(name)
            read |= {value} if isinstance(value, str) else set(value)
    old = [each.name for each in dataset.schema.fields if each.name in read and isinstance(each.dataType, VectorUDT)]
    return MLUtils.convertVectorColumnsToML(dataset, *old) if old else dataset


def _overall(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def measure(self: Any, label: float | None = None, *arguments: Any, **named: Any) -> Any:
        # Over all classes together, precision, recall and their mean are one number: the accuracy.
        return self.accuracy if label is None else method(self, label, *arguments, **named)

    return measure
