"""Analytics Zoo's image column, which is Spark's own image struct. Runs on the driver."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types


class NNImageSchema:
    """The types of image columns: `byteSchema` of pixels of 8 bits, `floatSchema` of floats."""

    byteSchema = types.StructType(
        [
            types.StructField("origin", types.StringType(), nullable=True),
            types.StructField("height", types.IntegerType(), nullable=False),
            types.StructField("width", types.IntegerType(), nullable=False),
            types.StructField("nChannels", types.IntegerType(), nullable=False),
            types.StructField("mode", types.IntegerType(), nullable=False),
            types.StructField("data", types.BinaryType(), nullable=False),
        ]
    )
    floatSchema = types.StructType(
        [
            *byteSchema.fields[:-1],
            types.StructField("data", types.ArrayType(types.FloatType(), containsNull=False), nullable=False),
        ]
    )


def with_origin_column(
    dataset: Any, imageColumn: str = "image", originColumn: str = "origin", bigdl_type: str = "float"
) -> Any:
    """Returns the DataFrame with another column with the file of each image."""
    del bigdl_type
    return dataset.withColumn(originColumn, dataset[imageColumn]["origin"])
