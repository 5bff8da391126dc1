"""Is what `fit` and `transform` were given a DataFrame of a Spark that runs? Runs on the driver."""

from __future__ import annotations

from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame

from keraunos.errors import JobError
from keraunos.launch.preflight import check_running
from keraunos.session.registry import session_of


def check_dataset(dataset: Any, method: str) -> None:
    """Raise where `method` was given something else than a Spark DataFrame, or one whose Spark was stopped."""
    if not isinstance(dataset, DataFrame):
        kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
        raise JobError(f"`{method}` needs a Spark DataFrame. Received: {kind}. {_advice(dataset, kind)}")
    check_running(session_of(dataset), method, "Create the DataFrame again in a new session.")


def _advice(dataset: Any, kind: str) -> str:
    if isinstance(dataset, RDD):
        return 'Make it one with spark.createDataFrame(rdd, "features array<float>, label int").'
    if kind.startswith(("pandas.", "pyarrow.")):
        return "Make it one with spark.createDataFrame(...)."
    return "Make one with spark.createDataFrame(...), from a list of rows, pandas or Arrow, or read it with spark.read."
