"""A model's predictions for images, stored with them. Runs on the driver; the tasks run on executors."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from keraunos.compat.zoo.bigdl.transform.vision.collection import Images
from keraunos.compat.zoo.bigdl.transform.vision.frames import ImageFrame, frame_of
from keraunos.compat.zoo.bigdl.transform.vision.image_feature import SAMPLE, TENSOR, ImageFeature
from keraunos.compat.zoo.bigdl.transform.vision.steps import sample_of
from keraunos.compat.zoo.feature.feature_set import spread
from keraunos.compat.zoo.feature.image.imageset import ImageSet, set_of
from keraunos.errors import DataError, JobError
from keraunos.job.columns import Columns
from keraunos.launch.predict import predict_rdd


def predict_image(
    images: Any, source: Any, columns: Columns, *, rows: int, key: str, output_layer: Any = None
) -> ImageFrame | ImageSet:
    """Returns the images of an `ImageFrame` or `ImageSet` with what a model returns for their samples, under a key."""
    if output_layer is not None:
        raise JobError(
            f"`output_layer` must be left out. Received: {output_layer!r}. Make a model that ends in that layer."
        )
    if not isinstance(images, (ImageFrame, ImageSet)):
        raise JobError(f"`image_frame` must be an ImageFrame or an ImageSet. Received: {type(images).__name__}.")
    task = functools.partial(_with_arrays, len(columns.features))
    pairs = spread(images.images).mapPartitions(task, preservesPartitioning=True)
    found = answered(predict_rdd(pairs, source, columns, rows, kept=True), key)
    if images.images.is_local:
        found = Images(found.features.collect())
    return set_of(found) if isinstance(images, ImageSet) else frame_of(found)


def answered(pairs: Any, key: str) -> Images:
    """Pairs of an image and a prediction in an RDD, as images that have it under a key."""
    return Images(pairs.map(functools.partial(_with_prediction, key)))


def without_tensors(feature: ImageFeature) -> ImageFeature:
    """Returns the image without what its pixels can be made to again, which is large."""
    return feature.without(TENSOR, SAMPLE)


def _with_arrays(inputs: int, features: Iterable[ImageFeature]) -> Iterator[tuple[ImageFeature, Any]]:
    for feature in features:
        if not feature.is_valid:
            yield feature, None
            continue
        arrays = sample_of(feature).features
        if len(arrays) != inputs:
            raise DataError(
                f"A sample must have an array for each of the model's {inputs} inputs. Received: {len(arrays)} of the "
                f"image {feature.uri!r}. Name them in ImageSetToSample(input_keys=…)."
            )
        yield without_tensors(feature), tuple(each.to_ndarray() for each in arrays)


def _with_prediction(key: str, pair: tuple[ImageFeature, Any]) -> ImageFeature:
    feature, prediction = pair
    made = feature.copy()
    if prediction is not None:
        made[key] = prediction
    return made
