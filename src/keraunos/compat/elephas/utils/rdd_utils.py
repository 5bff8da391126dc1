"""Arrays as RDDs, RDDs as arrays, LabeledPoints as either. Runs on the driver; `encode_label` also on executors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark import RDD, SparkContext
from pyspark.mllib.linalg import DenseVector, SparseVector, Vectors
from pyspark.mllib.regression import LabeledPoint

from keraunos.compat.elephas import rows
from keraunos.errors import DataError
from keraunos.session.registry import session_of


def to_simple_rdd(sc: SparkContext, features: Any, labels: Any) -> RDD[Any]:
    """Returns an RDD of (features, label) from arrays.

    Features of a model with several inputs may be a list of arrays.
    """
    if isinstance(features, (list, tuple)) and len(features) != len(labels):
        return rows.spread(session_of(sc), [*features, labels]).map(_several_inputs)
    if len(features) != len(labels):
        raise DataError(
            f"Features and labels must have as many rows as each other. Received: {len(features)} and {len(labels)}."
        )
    return rows.spread(session_of(sc), (features, labels))


def to_labeled_point(sc: SparkContext, features: Any, labels: Any, categorical: bool = False) -> RDD[LabeledPoint]:
    """Returns an RDD of LabeledPoints.

    With `categorical`, labels are one-hot and a point gets the number of its class.
    """
    if np.ndim(features) != 2:
        raise DataError(
            "The features of LabeledPoints must be an array with a row of numbers for each. Received: an array of "
            f"shape {np.shape(features)}. Use to_simple_rdd, which takes any shape."
        )
    if not categorical and np.ndim(labels) > 1 and np.size(labels) != len(labels):
        raise DataError(
            f"The label of a LabeledPoint is one number. Received: labels of shape {np.shape(labels)}. Give "
            "categorical=True where they are one-hot, or use to_simple_rdd."
        )
    return to_simple_rdd(sc, features, labels).map(functools.partial(_point, categorical))


def from_labeled_point(
    rdd: RDD[LabeledPoint], categorical: bool = False, nb_classes: int | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Features and labels as arrays on the driver; with `categorical`, labels are one-hot."""
    points = rdd.collect()
    features = np.asarray([point.features.toArray() for point in points])
    labels = np.asarray([point.label for point in points])
    if not categorical:
        return features, labels
    classes = nb_classes if nb_classes is not None else _classes(labels)
    return features, np.asarray([encode_label(label, classes) for label in labels])


def encode_label(label: Any, nb_classes: int) -> npt.NDArray[np.float64]:
    """Returns a class number as an array with a one at its place."""
    number = int(label)
    if number != float(label) or not 0 <= number < nb_classes:
        raise DataError(
            f"A label must be a class number from 0 to {nb_classes - 1}, for nb_classes={nb_classes}. "
            f"Received: {label!r}. Raise nb_classes, or number the classes from 0."
        )
    encoded = np.zeros(nb_classes)
    encoded[number] = 1.0
    return encoded


def lp_to_simple_rdd(lp_rdd: RDD[LabeledPoint], categorical: bool = False, nb_classes: int | None = None) -> RDD[Any]:
    """Returns an RDD of (features, label).

    With `categorical`, labels are one-hot over `nb_classes`, or the largest label's.
    """
    if categorical and nb_classes is None:
        nb_classes = _classes(lp_rdd.map(_label).collect())
    return lp_rdd.map(functools.partial(_pair, nb_classes if categorical else None))


def _classes(labels: Sequence[float] | npt.NDArray[Any]) -> int:
    found = np.asarray(labels)
    if not len(found) or np.any(found != np.floor(found)) or np.any(found < 0):
        what = "none" if not len(found) else f"{found[0]!r} among others"
        raise DataError(
            "`nb_classes` must be given with categorical=True where labels do not tell how many classes there are. "
            f"Expected labels 0, 1, 2 and so on. Received: {what}."
        )
    return int(found.max()) + 1


def _several_inputs(record: Sequence[Any]) -> Any:
    *features, label = record
    return list(features), label


def _point(categorical: bool, pair: Any) -> LabeledPoint:
    features, label = pair
    return LabeledPoint(float(np.argmax(label)) if categorical else float(np.ravel(label)[0]), _vector(features))


def _pair(classes: int | None, point: LabeledPoint) -> Any:
    features = point.features.toArray()
    return features, point.label if classes is None else encode_label(point.label, classes)


def _label(point: LabeledPoint) -> float:
    return float(point.label)


def _vector(features: Any) -> Any:
    if isinstance(features, (DenseVector, SparseVector)):
        return features
    return Vectors.dense(np.asarray(features, dtype=np.float64))
