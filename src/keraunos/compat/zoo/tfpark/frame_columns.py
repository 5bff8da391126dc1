"""The tensors for the columns of a DataFrame. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from keraunos.compat.zoo.tfpark.structure import STRING, TensorMeta
from keraunos.errors import ColumnError, DataError, JobError

_SCALARS: Sequence[tuple[Any, str]] = (
    (spark_types.BooleanType, "bool"),
    (spark_types.LongType, "int64"),
    (spark_types.IntegralType, "int32"),
    (spark_types.NumericType, "float32"),
    (spark_types.StringType, STRING),
    (spark_types.BinaryType, STRING),
)


def column_metas(dataframe: Any, columns: Any, argument: str) -> list[TensorMeta]:
    """Returns the tensors of some columns; the length of arrays and vectors is that of the first row's."""
    if not isinstance(dataframe, DataFrame):
        raise JobError(f"The rows must be a Spark DataFrame. Received: {type(dataframe).__name__}.")
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise JobError(f"`{argument}` must be a list of column names. Received: {columns!r}.")
    fields = {field.name: field.dataType for field in dataframe.schema.fields}
    absent = [name for name in names if name not in fields]
    if absent:
        raise ColumnError(
            f"`{argument}` must name columns of the DataFrame: {', '.join(map(repr, fields))}. Received: {absent[0]!r}."
        )
    nested = [name for name in names if _scalar(fields[name]) is None]
    first = dataframe.select(*(f"`{name}`" for name in nested)).first() if nested else None
    if nested and first is None:
        raise DataError("The DataFrame has no rows, so that the lengths of its arrays are not known.")
    return [
        _meta(name, fields[name], first[nested.index(name)] if first and name in nested else None) for name in names
    ]


def _meta(name: str, data_type: Any, value: Any) -> TensorMeta:
    scalar = _scalar(data_type)
    if scalar is not None:
        return TensorMeta(scalar, (), name)
    if hasattr(value, "toArray"):
        return TensorMeta("float32", (len(value),), name)
    inner = data_type
    while isinstance(inner, spark_types.ArrayType):
        inner = inner.elementType
    dtype = _scalar(inner)
    if not isinstance(data_type, spark_types.ArrayType) or dtype in (None, STRING) or value is None:
        raise ColumnError(
            f"Column {name!r} must hold numbers, strings, vectors, or arrays of numbers. Received: "
            f"{data_type.simpleString()}, with {value!r} in the first row."
        )
    return TensorMeta(str(dtype), np.shape(value), name)


def _scalar(data_type: Any) -> str | None:
    return next((dtype for kind, dtype in _SCALARS if isinstance(data_type, kind)), None)
