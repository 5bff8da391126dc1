"""Predictions as columns of a DataFrame. Runs on the driver.

`transform` puts one Arrow function into the query, which gives all predictions of a row as one struct; the columns
are fields of it, so that the model runs once a row. Only the feature columns travel to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from keraunos.errors import ColumnError
from keraunos.launch.spark import quoted, read_column, worker_environment
from keraunos.ml.inference import Serving, predictions, struct_type
from keraunos.ml.schema import find_field
from keraunos.session.registry import session_of

_STRUCT = "__keraunos_predictions"
_COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


def with_predictions(dataset: DataFrame, serving: Serving, broadcast: Any, custom_objects: Mapping[str, Any]) -> Any:
    """The DataFrame with the columns that the model's predictions fill."""
    names = serving.rendering.names()
    _refuse_existing(dataset, names)
    if not names:
        return dataset
    function = _function(serving, broadcast, dict(custom_objects))
    with worker_environment(session_of(dataset), serving.backend):
        # Called inside: Spark notes the environment of the Python workers when the function is made into a column.
        column = sf.arrow_udf(function, struct_type(serving.rendering))(
            *[_input(dataset, name) for name in serving.columns]
        )
    added = serving.rendering.columns(sf.col(_STRUCT))
    return _as_rows(dataset, serving.columns[0]).withColumn(_STRUCT, column).withColumns(added).drop(_STRUCT)


def _as_rows(dataset: DataFrame, name: str) -> Any:
    """The same rows, handed to the Arrow function one by one where Spark would hand them over in columns.

    Above a scan that gives columns Spark 4.3 makes rows for Python all the same, and then columns out of them again,
    which costs a fifth of the time. A filter that all rows pass makes it stay with rows. Other filters are still
    pushed below it, and where an optimizer sees through it, only the speed changes.
    """
    if not _is_set(dataset.sparkSession, _COLUMNAR_INPUT):
        return dataset
    column = sf.col(quoted(name))
    return dataset.filter(sf.isnull(column) | sf.isnotnull(column))


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether column names differ by case in this session."""
    return _is_set(spark, "spark.sql.caseSensitive")


def _function(serving: Serving, broadcast: Any, custom_objects: dict[str, Any]) -> Callable[..., Any]:
    alone = len(serving.columns) == 1

    # The annotations tell Spark which kind of Arrow function this is.
    def predict(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        columns = ((batch,) for batch in batches) if alone else batches
        return predictions(columns, serving, lambda: broadcast.value, custom_objects)

    return predict


def _input(dataset: DataFrame, name: str) -> Any:
    return read_column(find_field(dataset.schema, name, "featuresCol"))


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


def _is_set(spark: SparkSession, name: str) -> bool:
    # Asked without a default of ours, which would go before the one that Spark itself has.
    try:
        return str(spark.conf.get(name)).lower() == "true"
    except PySparkException:
        return False
