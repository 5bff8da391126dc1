"""`sqlContext.loadImageTable(path, size)`. Runs on the driver; images are decoded on executors.

The document reads a folder of images, one sub-folder a class, into a table with the columns `label` and `image`. The
method was the Spark build's own; here it is a function, and `install` returns it to Spark's classes.
"""

from __future__ import annotations

from typing import Any

from keraunos.data.images import read_images


def load_image_table(spark: Any, path: str, size: int | None = None, **options: Any) -> Any:
    """Returns the images under a folder as a DataFrame with the columns `image` and `label`.

    Args:
        spark: a session or an `SQLContext`.
        path: the folder, on any Hadoop file system.
        size: the height and width that every image gets: its shorter side is resized to it and the middle cut out.
        options: those of `keraunos.data.images.read_images`.
    """
    return read_images(getattr(spark, "sparkSession", spark), path, size, **options)


def install() -> None:
    """Give `loadImageTable` to sessions and SQL contexts."""
    from pyspark.sql import SparkSession, SQLContext

    for each in (SparkSession, SQLContext):
        each.loadImageTable = _load_image_table


def _load_image_table(self: Any, path: str, size: int | None = None, **options: Any) -> Any:
    """See `load_image_table`."""
    return load_image_table(self, path, size, **options)
