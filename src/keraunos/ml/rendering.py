"""A model's outputs as Arrow arrays, without Python work per row. Runs on workers; the driver asks for the types.

A rendering turns a batch of outputs into the fields of one struct, which Spark then splits into columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from keraunos.batch import Array, Arrays
from keraunos.errors import ModelError
from keraunos.ml.heads import Head
from keraunos.ml.signature import Port

_DENSE_VECTOR = 1
_INDICES = pa.list_(pa.field("element", pa.int32(), nullable=False))
_VALUES = pa.list_(pa.field("element", pa.float64(), nullable=False))
_VECTOR_FIELDS = [
    pa.field("type", pa.int8(), nullable=False),
    pa.field("size", pa.int32()),
    pa.field("indices", _INDICES),
    pa.field("values", _VALUES),
]


class Rendering(Protocol):
    """How outputs become columns. Implementations are frozen dataclasses: Spark carries them to the workers."""

    def spark_fields(self) -> list[Any]:
        """The columns as Spark's StructFields, with spark.ml's metadata where it has some."""

    def arrays(self, outputs: Arrays) -> dict[str, Any]:
        """The same columns as Arrow arrays for a batch of outputs."""


@dataclass(frozen=True)
class ClassColumns:
    """A class number, its probabilities and raw scores; a column without a name is left out."""

    head: Head
    prediction: str
    probability: str
    raw_prediction: str

    def spark_fields(self) -> list[Any]:
        """The columns as Spark's StructFields, with the number of classes in spark.ml's metadata."""
        from pyspark.ml.linalg import VectorUDT
        from pyspark.sql.types import DoubleType, StructField

        nominal = {"ml_attr": {"type": "nominal", "num_vals": self.head.classes}}
        sized = {"ml_attr": {"num_attrs": self.head.classes}}
        return [
            StructField(name, data_type, metadata=metadata)
            for name, data_type, metadata in (
                (self.raw_prediction, VectorUDT(), sized),
                (self.probability, VectorUDT(), sized),
                (self.prediction, DoubleType(), nominal),
            )
            if name
        ]

    def arrays(self, outputs: Arrays) -> dict[str, Any]:
        """The class with the highest probability, and the vectors."""
        raw, probability = self.head.scores(only_output(outputs))
        columns = {}
        if self.raw_prediction:
            columns[self.raw_prediction] = vectors(raw)
        if self.probability:
            columns[self.probability] = vectors(probability)
        if self.prediction:
            columns[self.prediction] = pa.array(probability.argmax(axis=1).astype(np.float64))
        return columns


@dataclass(frozen=True)
class NumberColumn:
    """One double."""

    prediction: str

    def spark_fields(self) -> list[Any]:
        """The column as Spark's StructField."""
        from pyspark.sql.types import DoubleType, StructField

        return [StructField(self.prediction, DoubleType())]

    def arrays(self, outputs: Arrays) -> dict[str, Any]:
        """The output as doubles."""
        return {self.prediction: pa.array(only_output(outputs).reshape(-1).astype(np.float64))}


@dataclass(frozen=True)
class ArrayColumns:
    """One column an output, with the output's own dimensions."""

    ports: tuple[Port, ...]
    columns: tuple[str | None, ...]

    def spark_fields(self) -> list[Any]:
        """The columns as Spark's StructFields: a number, or arrays as deep as the output has dimensions."""
        from pyspark.sql import types

        leaves = {
            "bool": types.BooleanType(),
            "int32": types.IntegerType(),
            "int64": types.LongType(),
            "float32": types.FloatType(),
            "float64": types.DoubleType(),
        }
        fields = []
        for port, column in zip(self.ports, self.columns, strict=True):
            if column is None:
                continue
            data_type: Any = leaves[_served_dtype(port.dtype)]
            for _ in port.shape:
                data_type = types.ArrayType(data_type, containsNull=False)
            fields.append(types.StructField(column, data_type))
        return fields

    def arrays(self, outputs: Arrays) -> dict[str, Any]:
        """The outputs as nested lists."""
        named = outputs if isinstance(outputs, dict) else {self.ports[0].name: outputs}
        return {
            column: nested_lists(named[port.name].astype(_served_dtype(port.dtype), copy=False))
            for port, column in zip(self.ports, self.columns, strict=True)
            if column is not None
        }


def only_output(outputs: Arrays) -> Array:
    """The one output of a model that has just one."""
    if not isinstance(outputs, dict):
        return outputs
    if len(outputs) != 1:
        raise ModelError(f"The model must have one output. Received: {list(outputs)!r}.")
    return next(iter(outputs.values()))


def nested_lists(array: Array) -> Any:
    """An array of n dimensions as n - 1 levels of lists over one flat buffer."""
    nested = pa.array(np.ascontiguousarray(array).reshape(-1))
    for depth in range(array.ndim - 1, 0, -1):
        lists = int(np.prod(array.shape[:depth]))
        list_type = pa.list_(pa.field("element", nested.type, nullable=False))
        nested = pa.ListArray.from_arrays(_offsets(lists, array.shape[depth]), nested, type=list_type)
    return nested


def vectors(values: npt.NDArray[np.float64]) -> Any:
    """The rows as dense spark.ml vectors, as Spark stores them."""
    rows, width = values.shape
    lists = pa.ListArray.from_arrays(_offsets(rows, width), pa.array(values.reshape(-1)), type=_VALUES)
    kind = pa.array(np.full(rows, _DENSE_VECTOR, dtype=np.int8))
    return pa.StructArray.from_arrays(
        [kind, pa.nulls(rows, pa.int32()), pa.nulls(rows, _INDICES), lists], fields=_VECTOR_FIELDS
    )


def output_names(ports: tuple[Port, ...], argument: str | Mapping[str, str]) -> tuple[str | None, ...]:
    """The column of each output; `None` for one that is dropped."""
    names = [port.name for port in ports]
    if isinstance(argument, Mapping):
        unknown = [name for name in argument if name not in names]
        if unknown:
            raise ModelError(
                f"`predictionCol` names outputs that the model does not have. Expected some of "
                f"{', '.join(map(repr, names))}. Received: {', '.join(map(repr, unknown))}."
            )
        return tuple(argument.get(name) or None for name in names)
    if len(ports) == 1:
        return (argument or None,)
    return tuple(f"{argument}_{name}" for name in names)


def _offsets(lists: int, length: int) -> Any:
    return pa.array(np.arange(lists + 1, dtype=np.int32) * np.int32(length))


def _served_dtype(dtype: str) -> str:
    if dtype in {"bool", "float64", "int64"}:
        return dtype
    if dtype.startswith(("int", "uint")):
        return "int64" if dtype in {"uint32", "uint64"} else "int32"
    return "float32"
