"""`bigdl.util.common`: what programs import from there beside the models. Runs on the driver and on executors."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.optim.methods import DOUBLEMAX

__all__ = [
    "DOUBLEMAX",
    "INTMAX",
    "INTMIN",
    "EvaluatedResult",
    "JTensor",
    "Sample",
    "create_spark_conf",
    "get_spark_context",
    "init_engine",
    # Programs import all from here, and use these without an import of their own.
    "np",
    "os",
    "sys",
    "tempfile",
    "to_list",
]

INTMAX = 2147483647
INTMIN = -2147483648


class EvaluatedResult(NamedTuple):
    """What a validation method made of some records."""

    result: float
    total_num: int
    method: str

    def __str__(self) -> str:
        return f"Evaluated result: {self.result}, total_num: {self.total_num}, method: {self.method}"


class JTensor:
    """An array, under the name that BigDL's programs give it."""

    def __init__(self, storage: npt.ArrayLike, shape: Sequence[int], bigdl_type: str = "float") -> None:
        self.storage = np.asarray(storage, dtype=np.float32 if bigdl_type == "float" else np.float64)
        self.shape = tuple(int(each) for each in shape)
        self.bigdl_type = bigdl_type

    @classmethod
    def from_ndarray(cls, a_ndarray: npt.ArrayLike | None, bigdl_type: str = "float") -> JTensor | None:
        """The array as a `JTensor`; `None` stays `None`."""
        if a_ndarray is None:
            return None
        array = np.asarray(a_ndarray)
        return cls(array.reshape(-1), array.shape, bigdl_type)

    def to_ndarray(self) -> npt.NDArray[Any]:
        """The array."""
        return self.storage.reshape(self.shape)


class Sample:
    """One record: arrays of features, and arrays of labels."""

    def __init__(self, features: Sequence[JTensor], labels: Sequence[JTensor], bigdl_type: str = "float") -> None:
        self.features = list(features)
        self.labels = list(labels)
        self.bigdl_type = bigdl_type

    @classmethod
    def from_ndarray(cls, features: Any, labels: Any, bigdl_type: str = "float") -> Sample:
        """The record of one array, or a list of arrays, on each side."""
        return cls(
            [tensor for each in to_list(features) if (tensor := JTensor.from_ndarray(each, bigdl_type)) is not None],
            [tensor for each in to_list(labels) if (tensor := JTensor.from_ndarray(each, bigdl_type)) is not None],
            bigdl_type,
        )

    @property
    def feature(self) -> JTensor:
        """The first array of features."""
        return self.features[0]

    @property
    def label(self) -> JTensor:
        """The first array of labels."""
        return self.labels[0]

    def arrays(self) -> list[npt.NDArray[Any]]:
        """All of the arrays, features first: a record as this package's RDDs hold it."""
        return [each.to_ndarray() for each in (*self.features, *self.labels)]


def to_list(a: Any) -> list[Any]:
    """A list of one thing, or of the things in a list."""
    return a if isinstance(a, list) else [a]


def create_spark_conf() -> Any:
    """A Spark configuration; nothing has to be set in it."""
    from pyspark import SparkConf

    return SparkConf()


def get_spark_context(conf: Any = None) -> Any:
    """The running SparkContext, or a new one."""
    from pyspark import SparkContext

    return SparkContext.getOrCreate(conf=create_spark_conf() if conf is None else conf)


def init_engine(bigdl_type: str = "float") -> None:
    """Nothing: there is no engine beside Spark that would have to be started."""
    del bigdl_type
