"""Analytics Zoo's `NNImageReader`: image files as a DataFrame. Runs on the driver; decoding runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from keraunos.compat.zoo.bigdl.transform.vision.image_feature import ImageFeature
from keraunos.compat.zoo.bigdl.transform.vision.steps import checked_image
from keraunos.compat.zoo.feature.feature_set import spread
from keraunos.compat.zoo.feature.image.imageset import ImageSet
from keraunos.compat.zoo.pipeline.nnframes.nn_image_schema import NNImageSchema

_MODES = {1: 0, 3: 16, 4: 24}


class NNImageReader:
    """Reads images."""

    @staticmethod
    def readImages(
        path: str,
        sc: Any = None,
        minPartitions: int = 1,
        resizeH: int = -1,
        resizeW: int = -1,
        image_codec: int = -1,
        bigdl_type: str = "float",
    ) -> Any:
        """Returns a DataFrame with the column `image`, which is Spark's image struct.

        Args:
            path: folders or files, with wildcards, separated by commas, on any Hadoop file system.
            sc: the SparkContext; the running one by default.
            minPartitions: how many partitions there are at least, where there are as many files.
            resizeH: what the images are resized to; -1 for no change.
            resizeW: the same.
            image_codec: above 0 for three channels, 0 for one, -1 for as many as each file has.
            bigdl_type: has no effect.
        """
        del bigdl_type
        spark = SparkSession.builder.getOrCreate()
        images = ImageSet.read(path, sc or spark, minPartitions, resizeH, resizeW, image_codec).images
        schema = StructType([StructField("image", NNImageSchema.byteSchema, nullable=True)])
        return spark.createDataFrame(spread(images).mapPartitions(image_rows), schema, verifySchema=False)


def image_rows(features: Iterable[ImageFeature]) -> Iterator[tuple[tuple[Any, ...]]]:
    """Images as rows of one image struct."""
    for feature in features:
        pixels = checked_image(feature).pixels
        height, width, channels = pixels.shape
        data = bytearray(np.ascontiguousarray(pixels).tobytes())
        yield ((feature.uri, height, width, channels, _MODES[channels], data),)
