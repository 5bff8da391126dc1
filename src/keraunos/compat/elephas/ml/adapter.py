"""Arrays as DataFrames and DataFrames as arrays or RDDs. Runs on the driver; RDDs are mapped on executors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import RDD, SparkContext
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from keraunos.compat.elephas.utils.rdd_utils import encode_label
from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.sparse_rows import as_dense
from keraunos.errors import DataError
from keraunos.launch.driver_rows import spread_columns
from keraunos.launch.spark import quoted
from keraunos.ml.rendering import nested_lists
from keraunos.ml.schema import find_field, find_slots, is_vector
from keraunos.session.registry import session_of

Array = npt.NDArray[Any]


def to_data_frame(sc: SparkContext | SparkSession, features: Any, labels: Any, categorical: bool = False) -> DataFrame:
    """Returns a DataFrame with the columns `features` and `label`.

    Rows of numbers become vectors, rows of more dimensions nested arrays. With `categorical`, labels are one-hot and
    become class numbers; otherwise single numbers become doubles, and rows of several numbers arrays.
    """
    inputs, targets = np.asarray(features), np.asarray(labels, dtype=np.float64)
    if inputs.dtype.kind not in "biuf":
        inputs = inputs.astype(np.float64)
    if len(inputs) != len(targets):
        raise DataError(
            f"Features and labels must have as many rows as each other. Received: {len(inputs)} and {len(targets)}."
        )
    if inputs.ndim < 2:
        raise DataError(f"Features must be rows of numbers. Received: an array of shape {inputs.shape}.")
    if categorical:
        targets = _class_numbers(targets)
    elif targets.shape[1:] == (1,):
        targets = targets.reshape(-1)
    session = sc if isinstance(sc, SparkSession) else SparkSession(sc)
    schema = f"features {_nested_type(inputs)}, label {_nested_type(targets)}"
    partitions = session_of(session).parallelism
    frame = spread_columns(session, [inputs, targets], partitions, _as_doubles, schema)
    return frame.withColumn("features", array_to_vector("features")) if inputs.ndim == 2 else frame


def from_data_frame(
    df: DataFrame,
    categorical: bool = False,
    nb_classes: int | None = None,
    features_col: str = "features",
    label_col: str = "label",
) -> tuple[Array, Array]:
    """Returns the features and the labels as arrays on the driver; with `categorical`, class numbers become one-hot."""
    slots = [
        find_slots(df.schema, name, parameter)[0][0]
        for name, parameter in ((features_col, "features_col"), (label_col, "label_col"))
    ]
    table = df.select(*(_plain(df, slot.columns[0]) for slot in slots)).toArrow().combine_chunks()
    columns = {name: _one_chunk(table.column(name)) for name in table.column_names}
    found, numbers = (as_dense(block) for block in ArrowReader(slots, floatx="float64").read(columns))
    if not categorical or numbers.ndim > 1:
        return found, numbers
    classes = nb_classes if nb_classes is not None else _count(numbers)
    return found, np.stack([encode_label(number, classes) for number in numbers])


def df_to_simple_rdd(
    df: DataFrame,
    categorical: bool = False,
    nb_classes: int | None = None,
    features_col: str = "features",
    label_col: str = "label",
) -> RDD[Any]:
    """Returns an RDD of (features, label); with `categorical`, class numbers become one-hot over `nb_classes`.

    If that is not given, it follows from the largest label.
    """
    chosen = df.select(
        *(
            sf.col(quoted(find_field(df.schema, name, parameter).name))
            for name, parameter in ((features_col, "features_col"), (label_col, "label_col"))
        )
    )
    classes = nb_classes
    if categorical and classes is None:
        largest = chosen.agg(sf.max(chosen.columns[1])).head()
        classes = _count(np.asarray([] if largest is None or largest[0] is None else [largest[0]]))
    return chosen.rdd.map(functools.partial(_pair, classes if categorical else None))


def _nested_type(array: Array) -> str:
    return "array<" * (array.ndim - 1) + "double" + ">" * (array.ndim - 1)


def _as_doubles(arrays: list[Array]) -> list[Any]:
    return [nested_lists(array.astype(np.float64)) for array in arrays]


def _class_numbers(labels: Array) -> Array:
    if labels.ndim == 1 or labels.shape[1:] == (1,):
        raise DataError(
            f"Labels must be one-hot rows with categorical=True. Received: an array of shape {labels.shape}. Leave "
            "categorical out for class numbers."
        )
    numbers: Array = labels.argmax(axis=1).astype(np.float64)
    return numbers


def _count(numbers: Array) -> int:
    if not len(numbers) or np.any(numbers != np.floor(numbers)) or np.any(numbers < 0):
        what = "none" if not len(numbers) else f"{numbers[0]!r}"
        raise DataError(
            "`nb_classes` must be given with categorical=True where labels do not tell how many classes there are. "
            f"Expected labels 0, 1, 2 and so on. Received: {what}."
        )
    return int(numbers.max()) + 1


def _pair(classes: int | None, row: Any) -> tuple[Any, Any]:
    features, label = (np.asarray(each.toArray() if hasattr(each, "toArray") else each) for each in row)
    if label.ndim == 0:
        return features, encode_label(label.item(), classes) if classes is not None else label.item()
    return features, label


def _plain(df: DataFrame, name: str) -> Any:
    column = sf.col(quoted(name))
    return (
        sf.unwrap_udt(column).alias(name) if is_vector(find_field(df.schema, name, "features_col").dataType) else column
    )


def _one_chunk(column: Any) -> Any:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], column.type)
    )
