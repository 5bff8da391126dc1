"""Images and feature sets as the rows of a dataset.

The classes run on the driver, what they hand to Spark on executors.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keraunos.compat.zoo.bigdl.transform.vision.image_feature import (
    PREDICT,
    ImageFeature,
)
from keraunos.compat.zoo.bigdl.transform.vision.steps import sample_of
from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.compat.zoo.feature.feature_set import FeatureSet, spread
from keraunos.compat.zoo.feature.image.imageset import ImageSet, set_of
from keraunos.compat.zoo.feature.image_predictions import answered, without_tensors
from keraunos.compat.zoo.tfpark.descriptions import described
from keraunos.compat.zoo.tfpark.row_sources import RowSource
from keraunos.compat.zoo.tfpark.structure import conformed, flatten
from keraunos.errors import DataError, JobError
from keraunos.launch.predict import predict_rdd

_log = logging.getLogger(__name__)


class ImageRows(RowSource):
    """The records of an `ImageSet`'s images."""

    def __init__(self, image_set: Any, structure: Any, argument: str = "image_set") -> None:
        if not isinstance(image_set, ImageSet):
            raise JobError(f"`{argument}` must be an ImageSet. Received: {type(image_set).__name__}.")
        self._features = spread(image_set.images)
        self._structure = structure

    def partitions(self) -> int:
        """Returns those of the images."""
        return int(self._features.getNumPartitions())

    def training(self, workers: int) -> Any:
        """Returns the records; the launcher coalesces the partitions."""
        return self.records()

    def records(self) -> Any:
        """Returns the records, flat."""
        task = functools.partial(_flat_samples, self._structure)
        return self._features.mapPartitions(task, preservesPartitioning=True)

    def predicted(self, places: Sequence[int], source: Any, columns: Any, rows: int) -> Any:
        """Returns the images with what a model returns for them; some entries of each record feed it."""
        task = functools.partial(_with_records, self._structure, tuple(places))
        pairs = self._features.mapPartitions(task, preservesPartitioning=True)
        return set_of(answered(predict_rdd(pairs, source, columns, rows, kept=True), PREDICT))


class FeatureRows(RowSource):
    """The `Sample`s of a `FeatureSet`."""

    def __init__(self, dataset: Any, structure: Any, argument: str = "dataset") -> None:
        if not isinstance(dataset, FeatureSet):
            raise JobError(f"`{argument}` must be a FeatureSet. Received: {type(dataset).__name__}.")
        if dataset.draws:
            _log.warning(
                "The random steps of %s are taken once for each image: all epochs see the same crops and colours. For "
                "other ones in each epoch put Keras's Random... layers into the model.",
                argument,
            )
        self._elements = dataset.elements
        self._structure = structure
        self.kept_as = (dataset.memory_type, dataset.sequential_order, dataset.shuffle)

    def partitions(self) -> int:
        """Returns those of the elements."""
        return int(self._elements.getNumPartitions())

    def training(self, workers: int) -> Any:
        """Returns the records; the launcher coalesces the partitions."""
        return self.records()

    def records(self) -> Any:
        """Returns the records, flat."""
        task = functools.partial(_flat_samples, self._structure)
        return self._elements.mapPartitions(task, preservesPartitioning=True)


def image_rows(image_set: Any, image: Any, label: Any, validation: Any) -> tuple[ImageRows, Any, ImageRows | None]:
    """Returns the rows of an `ImageSet`, their structure, and the rows to validate on."""
    structure = described(image, label)
    others = None if validation is None else ImageRows(validation, structure, "validation_image_set")
    return ImageRows(image_set, structure), structure, others


def feature_rows(
    dataset: Any, features: Any, labels: Any, validation: Any
) -> tuple[FeatureRows, Any, FeatureRows | None]:
    """Returns the rows of a `FeatureSet`, their structure, and the rows to validate on."""
    structure = described(features, labels)
    others = None if validation is None else FeatureRows(validation, structure, "validation_dataset")
    return FeatureRows(dataset, structure), structure, others


def _flat_samples(structure: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    for number, element in enumerate(elements):
        yield _flat(structure, _sample(element), number)


def _with_records(
    structure: Any, places: Sequence[int], features: Iterable[ImageFeature]
) -> Iterator[tuple[ImageFeature, tuple[Any, ...] | None]]:
    for number, feature in enumerate(features):
        if not feature.is_valid:
            yield feature, None
            continue
        record = _flat((structure[0],), sample_of(feature), number, alone=True)
        yield without_tensors(feature), tuple(record[place] for place in places)


def _sample(element: Any) -> Sample:
    if isinstance(element, Sample):
        return element
    if isinstance(element, ImageFeature):
        return sample_of(element)
    raise DataError(
        f"An element must be a Sample, or an image that has one. Received: {type(element).__name__}. Transform the "
        "elements with ImageSetToSample() and ImageFeatureToSample()."
    )


def _flat(structure: Any, sample: Sample, number: int, *, alone: bool = False) -> tuple[Any, ...]:
    """Returns the arrays of a record, which must be those that the structure describes."""
    given = [sample.features] if alone else [sample.features, sample.labels][: len(structure)]
    leaves: list[Any] = []
    for part, tensors, name in zip(structure, given, ("features", "labels"), strict=False):
        metas = flatten(part)
        if len(metas) != len(tensors):
            raise DataError(
                f"A sample must have {len(metas)} {name}, as described. Received: {len(tensors)} in record {number}. "
                "Read the images with their labels, and name these in ImageSetToSample(target_keys=['label'])."
            )
        leaves += [conformed(each.to_ndarray(), meta, number) for each, meta in zip(tensors, metas, strict=True)]
    return tuple(leaves)
