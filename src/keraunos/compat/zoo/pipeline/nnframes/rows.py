"""Rows of a DataFrame as records of a model, and its outputs as values of a column. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.errors import DataError


@dataclass(frozen=True)
class RowReading:
    """How a row becomes a record.

    Attributes:
        step: from a feature, or from a pair of a feature and a label, to a `Sample`.
        inputs: how many arrays the model takes.
        pairs: whether the step takes pairs.
        classes: how many classes labels may be of, counted from 1; 0 where they are no classes.
    """

    step: Preprocessing
    inputs: int
    pairs: bool = True
    classes: int = 0


def feature_shapes(step: Preprocessing, value: Any) -> list[tuple[int | None, ...]]:
    """Returns the shapes of the arrays that a step makes of a value."""
    found = step.transform(value)
    if not isinstance(found, Sample):
        raise _no_sample(found)
    return [each.to_ndarray().shape for each in found.features]


def train_records(reading: RowReading, rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields the arrays of rows of a feature and a label, features first."""
    for number, (feature, label) in enumerate(rows):
        if feature is None or label is None:
            raise DataError(
                f"A row must have a feature and a label to be trained with. Received: null in row {number} of a "
                "partition. Remove such rows with `dropna`."
            )
        sample = _sample(reading, (feature, label), number)
        if len(sample.labels) != 1:
            raise DataError(
                f"A row must have one label. Received: {len(sample.labels)} in row {number} of a partition. Give "
                "`label_preprocessing` a step, and `feature_preprocessing` one that gives arrays."
            )
        found = sample.label.to_ndarray()
        if reading.classes:
            _check_class(found, reading.classes, number)
        yield [*(each.to_ndarray() for each in sample.features), found]


def kept_records(
    reading: RowReading, place: int, rows: Iterable[Any]
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...] | None]]:
    """Yields rows with the arrays of the feature at a place; a row without one keeps no arrays."""
    for number, row in enumerate(rows):
        value = row[place]
        if value is None:
            yield tuple(row), None
            continue
        sample = _sample(reading, (value, None) if reading.pairs else value, number)
        yield tuple(row), tuple(each.to_ndarray() for each in sample.features)


def with_outputs(rows: Iterable[tuple[tuple[Any, ...], Any]]) -> Iterator[tuple[Any, ...]]:
    """Yields rows with a model's output, as a list of numbers."""
    for row, output in rows:
        yield (*row, None if output is None else np.asarray(output, np.float32).reshape(-1).tolist())


def with_classes(threshold: float, rows: Iterable[tuple[tuple[Any, ...], Any]]) -> Iterator[tuple[Any, ...]]:
    """Yields rows with the class of the largest output, from 1.

    With one output, 1 if it is above the threshold, otherwise 0.
    """
    for row, output in rows:
        if output is None:
            yield (*row, None)
            continue
        scores = np.asarray(output).reshape(-1)
        alone = scores.size == 1
        yield (*row, float(scores[0] > threshold) if alone else float(scores.argmax() + 1))


def _sample(reading: RowReading, value: Any, number: int) -> Sample:
    found = reading.step.transform(value)
    if not isinstance(found, Sample):
        raise _no_sample(found)
    if len(found.features) != reading.inputs:
        raise DataError(
            f"The preprocessing must give an array for each of the model's {reading.inputs} inputs. Received: "
            f"{len(found.features)} in row {number} of a partition. Give `feature_preprocessing` a list of sizes."
        )
    return found


def _no_sample(found: Any) -> DataError:
    return DataError(
        f"The preprocessing must give a Sample. Received: {type(found).__name__}. End it with TensorToSample()."
    )


def _check_class(label: Any, classes: int, number: int) -> None:
    if label.size != 1 or not 1 <= float(label.flat[0]) <= classes or float(label.flat[0]) % 1:
        raise DataError(
            f"A label must be a class from 1 to {classes}: BigDL counts them from 1. Received: "
            f"{label.reshape(-1).tolist()} in row {number} of a partition. Add 1 to labels from 0."
        )
