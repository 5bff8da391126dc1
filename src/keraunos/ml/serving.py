"""Predictions as columns of a DataFrame. Runs on the driver.

`transform` puts one Arrow function into the query, which gives all predictions of a row as one struct; the columns
are fields of it, so that the model runs once a row. Only the feature columns travel to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses
from pyspark.sql.types import StructType

from keraunos.errors import ColumnError
from keraunos.launch.spark import worker_environment
from keraunos.ml.inference import Serving, predictions
from keraunos.ml.schema import find_field, is_vector

_STRUCT = "__keraunos_predictions"


def with_predictions(dataset: DataFrame, serving: Serving, broadcast: Any, custom_objects: Mapping[str, Any]) -> Any:
    """The DataFrame with the columns that the model's predictions fill."""
    fields = serving.rendering.spark_fields()
    _refuse_existing(dataset, [field.name for field in fields])
    if not fields:
        return dataset
    function = _function(serving, broadcast, dict(custom_objects))
    # Renamed inside the struct: a column's name may hold dots, and two may differ in case only.
    struct = StructType([type(field)(f"f{i}", field.dataType) for i, field in enumerate(fields)])
    with worker_environment(dataset.sparkSession, serving.backend):
        # Called inside: Spark notes the environment of the Python workers when the function is made into a column.
        column = F.arrow_udf(function, struct)(*[_input(dataset, name) for name in serving.columns])
    added = {
        field.name: F.col(_STRUCT).getField(f"f{i}").alias(field.name, metadata=field.metadata or {})
        for i, field in enumerate(fields)
    }
    return dataset.withColumn(_STRUCT, column).withColumns(added).drop(_STRUCT)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether column names differ by case in this session."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def _function(serving: Serving, broadcast: Any, custom_objects: dict[str, Any]) -> Callable[..., Any]:
    alone = len(serving.columns) == 1

    # The annotations tell Spark which kind of Arrow function this is.
    def predict(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        columns = ((batch,) for batch in batches) if alone else batches
        return predictions(columns, serving, lambda: broadcast.value, custom_objects)

    return predict


def _input(dataset: DataFrame, name: str) -> Any:
    column = F.col(f"`{name.replace('`', '``')}`")
    return F.unwrap_udt(column) if is_vector(find_field(dataset.schema, name, "featuresCol").dataType) else column


def _refuse_existing(dataset: DataFrame, names: list[str]) -> None:
    sensitive = is_case_sensitive(dataset.sparkSession)
    existing = {name if sensitive else name.lower() for name in dataset.columns}
    for name in names:
        if (name if sensitive else name.lower()) in existing:
            raise ColumnError(
                f"The DataFrame already has a column {name!r}, which `transform` is to add. Expected a new name. "
                f"Received: {', '.join(map(repr, dataset.columns))}. Drop the column, or give the prediction another "
                "name, as with setPredictionCol."
            )
