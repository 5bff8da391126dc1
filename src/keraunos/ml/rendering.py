"""A model's outputs as Arrow arrays, without Python work per row. Runs on workers; the driver asks for the types.

A rendering turns a batch of outputs into the fields of one struct, which Spark then splits into columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from keraunos.batch import Array, Arrays
from keraunos.errors import ModelError
from keraunos.ml.heads import Head
from keraunos.ml.signature import Port


class Rendering(Protocol):
    """How outputs become columns. Implementations are frozen dataclasses: Spark carries them to the workers."""

    def names(self) -> list[str]:
        """The columns that are added."""

    def struct_types(self) -> list[Any]:
        """The Spark types of the struct's fields, which are called f0, f1 and so on."""

    def columns(self, struct: Any) -> dict[str, Any]:
        """The columns that are added, as expressions over the struct, with spark.ml's metadata where it has some."""

    def arrays(self, outputs: Arrays) -> list[Any]:
        """The struct's fields as Arrow arrays for a batch of outputs."""


@dataclass(frozen=True)
class ClassColumns:
    """A class number, its probabilities and raw scores; a column without a name is left out."""

    head: Head
    prediction: str
    probability: str
    raw_prediction: str
    thresholds: tuple[float, ...] | None = None

    def names(self) -> list[str]:
        """The columns that are added."""
        return [name for name in (self.raw_prediction, self.probability, self.prediction) if name]

    def struct_types(self) -> list[Any]:
        """Doubles and arrays of them."""
        from pyspark.sql.types import ArrayType, DoubleType

        vector = ArrayType(DoubleType(), containsNull=False)
        return [DoubleType() if part == "prediction" else vector for part in self._parts()]

    def columns(self, struct: Any) -> dict[str, Any]:
        """Vectors and a class, with the number of classes in spark.ml's metadata."""
        parts = self._parts()
        fields = {part: struct.getField(field_name(i)) for i, part in enumerate(parts)}
        sized = {"ml_attr": {"num_attrs": self.head.classes}}
        nominal = {"ml_attr": {"type": "nominal", "num_vals": self.head.classes}}
        added = {}
        if self.raw_prediction:
            raw = _vector(fields["raw" if "raw" in fields else "probability"])
            added[self.raw_prediction] = raw.alias(self.raw_prediction, metadata=sized)
        if self.probability:
            added[self.probability] = _vector(fields["probability"]).alias(self.probability, metadata=sized)
        if self.prediction:
            added[self.prediction] = fields["prediction"].alias(self.prediction, metadata=nominal)
        return added

    def arrays(self, outputs: Arrays) -> list[Any]:
        """The class that the head chooses, null where a probability is NaN, and the scores."""
        raw, probability = self.head.scores(only_output(outputs))
        parts = self._parts()
        made = []
        if "raw" in parts:
            made.append(nested_lists(raw))
        if "probability" in parts:
            made.append(nested_lists(probability))
        if "prediction" in parts:
            unknown = np.isnan(probability).any(axis=1)
            made.append(pa.array(self.head.chosen(probability, self.thresholds), mask=unknown))
        return made

    def _parts(self) -> list[str]:
        """What travels: scores that are probabilities already make one field for two columns."""
        own_raw = bool(self.raw_prediction) and self.head.logits
        shared = bool(self.raw_prediction) and not self.head.logits
        asked = {"raw": own_raw, "probability": bool(self.probability) or shared, "prediction": bool(self.prediction)}
        return [part for part, wanted in asked.items() if wanted]


@dataclass(frozen=True)
class NumberColumn:
    """One double; without a name it is left out."""

    prediction: str

    def names(self) -> list[str]:
        """The column that is added."""
        return [self.prediction] if self.prediction else []

    def struct_types(self) -> list[Any]:
        """One double."""
        from pyspark.sql.types import DoubleType

        return [DoubleType()]

    def columns(self, struct: Any) -> dict[str, Any]:
        """The one field."""
        return {self.prediction: struct.getField(field_name(0))}

    def arrays(self, outputs: Arrays) -> list[Any]:
        """The output as doubles."""
        return [pa.array(only_output(outputs).reshape(-1).astype(np.float64))]


@dataclass(frozen=True)
class VectorColumn:
    """One vector with all elements of the output; without a name it is left out."""

    prediction: str

    def names(self) -> list[str]:
        """The column that is added."""
        return [self.prediction] if self.prediction else []

    def struct_types(self) -> list[Any]:
        """One array of doubles."""
        from pyspark.sql.types import ArrayType, DoubleType

        return [ArrayType(DoubleType(), containsNull=False)]

    def columns(self, struct: Any) -> dict[str, Any]:
        """The one field as a vector."""
        return {self.prediction: _vector(struct.getField(field_name(0)))}

    def arrays(self, outputs: Arrays) -> list[Any]:
        """The output, flat, as doubles."""
        output = only_output(outputs)
        return [nested_lists(output.reshape(len(output), -1).astype(np.float64))]


@dataclass(frozen=True)
class ArrayColumns:
    """One column an output, with the output's own dimensions; an output whose column is `None` is left out."""

    ports: tuple[Port, ...]
    targets: tuple[str | None, ...]

    def names(self) -> list[str]:
        """The columns that are added."""
        return [target for target in self.targets if target]

    def struct_types(self) -> list[Any]:
        """A number, or arrays as deep as the output has dimensions."""
        from pyspark.sql import types

        leaves = {
            "bool": types.BooleanType(),
            "int32": types.IntegerType(),
            "int64": types.LongType(),
            "float32": types.FloatType(),
            "float64": types.DoubleType(),
        }
        made = []
        for port in self._served():
            data_type: Any = leaves[served_dtype(port.dtype)]
            for _ in port.shape:
                data_type = types.ArrayType(data_type, containsNull=False)
            made.append(data_type)
        return made

    def columns(self, struct: Any) -> dict[str, Any]:
        """The fields as they are."""
        return {name: struct.getField(field_name(i)) for i, name in enumerate(self.names())}

    def arrays(self, outputs: Arrays) -> list[Any]:
        """The outputs as nested lists."""
        named = outputs if isinstance(outputs, dict) else {self.ports[0].name: outputs}
        return [nested_lists(named[port.name].astype(served_dtype(port.dtype), copy=False)) for port in self._served()]

    def _served(self) -> list[Port]:
        return [port for port, target in zip(self.ports, self.targets, strict=True) if target]


def field_name(position: int) -> str:
    """The struct's fields are numbered: a column's name may hold dots, and two may differ in case only."""
    return f"f{position}"


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


def _vector(array: Any) -> Any:
    # Not returned as vectors by the Arrow function itself: where Spark hands its output on in columns, as it does
    # above a Parquet scan, it takes no user-defined type.
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as sf

    return sf.when(array.isNotNull(), array_to_vector(array))


def _offsets(lists: int, length: int) -> Any:
    return pa.array(np.arange(lists + 1, dtype=np.int32) * np.int32(length))


def served_dtype(dtype: str) -> str:
    """The type in which an output of this type becomes a column."""
    if dtype in {"bool", "float64", "int64"}:
        return dtype
    if dtype.startswith(("int", "uint")):
        return "int64" if dtype in {"uint32", "uint64"} else "int32"
    return "float32"
