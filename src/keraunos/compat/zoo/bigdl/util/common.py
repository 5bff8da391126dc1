"""`bigdl.util.common`: what programs import from there beside the models. Runs on the driver and on executors.

`from bigdl.util.common import *` also exported the imports of that module: numpy, Spark's names, `os`.
These are imported on first use, because executors import this module for its records.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.optim.methods import DOUBLEMAX
from keraunos.errors import DataError, JobError
from keraunos.session.registry import running_session, session_of
from keraunos.session.session import Session

if TYPE_CHECKING:
    from pyspark import RDD, SparkConf, SparkContext, SparkFiles
    from pyspark.sql import DataFrame, SQLContext

_OF_SPARK = {
    "DataFrame": "pyspark.sql",
    "RDD": "pyspark",
    "SQLContext": "pyspark.sql",
    "SparkConf": "pyspark",
    "SparkContext": "pyspark",
    "SparkFiles": "pyspark",
}

__all__ = [
    "DOUBLEMAX",
    "INTMAX",
    "INTMIN",
    "RDD",
    "RNG",
    "DataFrame",
    "EvaluatedResult",
    "JTensor",
    "JavaCreator",
    "JavaValue",
    "SQLContext",
    "Sample",
    "SparkConf",
    "SparkContext",
    "SparkFiles",
    "callBigDlFunc",
    "callJavaFunc",
    "create_spark_conf",
    "create_tmp_path",
    "get_dtype",
    "get_local_file",
    "get_node_and_core_number",
    "get_spark_context",
    "get_spark_sql_context",
    "init_engine",
    "init_executor_gateway",
    "is_distributed",
    "long",
    "np",
    "os",
    "redire_spark_logs",
    "show_bigdl_info_logs",
    "sys",
    "tempfile",
    "text_from_path",
    "threading",
    "to_list",
    "to_sample_rdd",
    "traceback",
    "unicode",
]

INTMAX = 2147483647
INTMIN = -2147483648

# What Python 3 calls them.
long = int
unicode = str


def __getattr__(name: str) -> Any:
    if name in _OF_SPARK:
        return getattr(import_module(_OF_SPARK[name]), name)
    raise AttributeError(f"module 'bigdl.util.common' has no attribute {name!r} here.")


def passed_on(module: str, name: str) -> Any:
    """Returns the object that a star import of this module exported under a name."""
    if name in __all__:
        return getattr(sys.modules[__name__], name)
    raise AttributeError(f"module {module!r} has no attribute {name!r} here.")


class JTensor:
    """An array, under BigDL's name; with `indices` a sparse one."""

    def __init__(
        self, storage: npt.ArrayLike, shape: Any, bigdl_type: str = "float", indices: npt.ArrayLike | None = None
    ) -> None:
        self.storage = np.asarray(storage, dtype=np.float32 if bigdl_type == "float" else np.float64)
        self.shape = tuple(int(each) for each in np.atleast_1d(np.asarray(shape)))
        self.bigdl_type = bigdl_type
        self.indices = None if indices is None else np.asarray(indices, dtype=np.int32)

    @classmethod
    def from_ndarray(cls, a_ndarray: npt.ArrayLike | None, bigdl_type: str = "float") -> JTensor | None:
        """Returns the array as a `JTensor`; `None` stays `None`."""
        if a_ndarray is None:
            return None
        array = np.asarray(a_ndarray)
        return cls(array, array.shape, bigdl_type)

    @classmethod
    def sparse(cls, a_ndarray: Any, i_ndarray: Any, shape: Any, bigdl_type: str = "float") -> JTensor | None:
        """Returns the array of a shape that has the given values at places counted from 0, and 0 elsewhere.

        `i_ndarray` has the places' first coordinates, then their second ones, and so on.
        """
        if a_ndarray is None:
            return None
        values, places, lengths = np.asarray(a_ndarray), np.asarray(i_ndarray), np.asarray(shape)
        if places.size != values.size * lengths.size:
            raise DataError(
                f"A sparse JTensor must have {lengths.size} indices for each value, as `shape` has lengths. Received: "
                f"{values.size} values and {places.size} indices."
            )
        return cls(values, lengths, bigdl_type, places)

    def to_ndarray(self) -> npt.NDArray[Any]:
        """Returns the array."""
        if self.indices is not None:
            raise DataError(
                "A sparse JTensor is not given as an array by to_ndarray, which could be very large. Use `storage`, "
                "`indices` and `shape`."
            )
        return self.storage.reshape(self.shape)

    def dense(self) -> npt.NDArray[Any]:
        """Returns the array, also of a sparse tensor."""
        if self.indices is None:
            return self.to_ndarray()
        array = np.zeros(self.shape, self.storage.dtype)
        array[tuple(self.indices.reshape(len(self.shape), -1))] = self.storage.reshape(-1)
        return array

    def __repr__(self) -> str:
        indices = "" if self.indices is None else f" ,indices {self.indices}"
        return f"JTensor: storage: {self.storage}, shape: {list(self.shape)}{indices}, {self.bigdl_type}"


class Sample:
    """One record: arrays of features, and arrays of labels."""

    def __init__(self, features: Sequence[JTensor], labels: Sequence[JTensor], bigdl_type: str = "float") -> None:
        self.features = list(features)
        self.labels = list(labels)
        self.bigdl_type = bigdl_type

    @classmethod
    def from_ndarray(cls, features: Any, labels: Any, bigdl_type: str = "float") -> Sample:
        """Returns the record of one array, or a list of arrays, on each side."""
        return cls(
            [tensor for each in to_list(features) if (tensor := JTensor.from_ndarray(each, bigdl_type)) is not None],
            [tensor for each in to_list(labels) if (tensor := JTensor.from_ndarray(each, bigdl_type)) is not None],
            bigdl_type,
        )

    @classmethod
    def from_jtensor(cls, features: Any, labels: Any, bigdl_type: str = "float") -> Sample:
        """Returns the record of one `JTensor`, or a list of them, on each side; a label may be a number."""
        kept = [each if isinstance(each, JTensor) else JTensor(each, np.shape(each)) for each in to_list(labels)]
        return cls(to_list(features), kept, bigdl_type)

    @property
    def feature(self) -> JTensor:
        """The first array of features."""
        return self.features[0]

    @property
    def label(self) -> JTensor:
        """The first array of labels."""
        return self.labels[0]

    def arrays(self) -> list[npt.NDArray[Any]]:
        """Returns all of the arrays, features first: a record as this package's RDDs hold it."""
        return [each.dense() for each in (*self.features, *self.labels)]

    def __repr__(self) -> str:
        return f"Sample: features: {self.features}, labels: {self.labels}"


class EvaluatedResult:
    """The result of a validation method."""

    def __init__(self, result: float, total_num: int, method: str) -> None:
        self.result = result
        self.total_num = total_num
        self.method = method

    def __repr__(self) -> str:
        return f"Evaluated result: {self.result}, total_num: {self.total_num}, method: {self.method}"


class RNG:
    """Random numbers in BigDL's order: those of a Mersenne twister, as it makes 32 bits at a time."""

    _twister = np.random.RandomState()

    def __init__(self, bigdl_type: str = "float") -> None:
        self.bigdl_type = bigdl_type

    def set_seed(self, seed: int) -> None:
        """Reset the numbers of every `RNG`."""
        RNG._twister = np.random.RandomState(seed)

    def uniform(self, a: float, b: float, size: Sequence[int]) -> npt.NDArray[np.float32]:
        """Numbers from `a` to `b`."""
        bits = RNG._twister.randint(0, 2**32, tuple(size), dtype=np.uint32)
        return (bits / 2**32 * (b - a) + a).astype(np.float32)


class JavaValue:
    """Refused when it is made: an object of BigDL's in the JVM."""

    def __init__(self, jvalue: Any, bigdl_type: str, *args: Any) -> None:
        raise _without_jvm(
            f"{type(self).__name__}({jvalue!r}, {bigdl_type!r}{''.join(f', {each!r}' for each in args)})"
        )


class JavaCreator:
    """Refused when it is used: it chose the JVM's classes that answered calls."""

    @classmethod
    def add_creator_class(cls, jinvoker: Any) -> NoReturn:
        """Refused."""
        raise _without_jvm(f"JavaCreator.add_creator_class({jinvoker!r})")

    set_creator_class = add_creator_class


def callBigDlFunc(bigdl_type: str, name: str, *args: Any) -> NoReturn:
    """Refused: it called a function of BigDL's in the JVM."""
    raise _without_jvm(f"callBigDlFunc{(bigdl_type, name, *args)!r}")


def callJavaFunc(func: Any, *args: Any) -> NoReturn:
    """Refused: it called a function of the JVM's."""
    raise _without_jvm(f"callJavaFunc{(func, *args)!r}")


def init_executor_gateway(sc: Any, bigdl_type: str = "float") -> NoReturn:
    """Refused: it let executors call the JVM."""
    raise _without_jvm(f"init_executor_gateway({sc!r}, {bigdl_type!r})")


def _without_jvm(call: str) -> JobError:
    return JobError(
        f"{call} must be replaced: BigDL's Scala code is not part of Keraunos, which runs BigDL's Python API. Use the "
        "layers, criteria and methods of bigdl.nn, bigdl.optim and zoo."
    )


def get_dtype(bigdl_type: str) -> str:
    """Returns the name of numpy's type for arrays; BigDL has only one."""
    del bigdl_type
    return "float32"


def to_list(a: Any) -> list[Any]:
    """Returns a list of one thing, or of the things in a list."""
    return a if isinstance(a, list) else [a]


def to_sample_rdd(x: Any, y: Any, numSlices: int | None = None) -> Any:
    """Returns an RDD of a `Sample` for each row of two arrays."""
    pairs = _session().parallelize(list(zip(x, y, strict=True)), numSlices)
    return pairs.map(_sample_of)


def _sample_of(pair: tuple[Any, Any]) -> Sample:
    return Sample.from_ndarray(*pair)


def create_spark_conf() -> Any:
    """Returns a Spark configuration; nothing has to be set in it."""
    from pyspark import SparkConf

    return SparkConf()


def get_spark_context(conf: Any = None) -> Any:
    """Returns the running SparkContext, or a new one."""
    from pyspark import SparkContext

    context = SparkContext.getOrCreate(conf=create_spark_conf() if conf is None else conf)
    session_of(context).choose_own_python()
    return context


def _session() -> Session:
    return session_of(get_spark_context())


def get_spark_sql_context(sc: Any) -> Any:
    """Returns the SQLContext of a SparkContext."""
    from pyspark.sql import SQLContext

    return SQLContext.getOrCreate(sc)


def init_engine(bigdl_type: str = "float") -> None:
    """There is no engine to start; workers of a Spark on this machine run the program's own Python from here on."""
    del bigdl_type
    session = running_session()
    if session is not None:
        session.choose_own_python()


def get_node_and_core_number(bigdl_type: str = "float") -> tuple[int, int]:
    """Returns how many machines run tasks, and how many tasks each of them runs at once."""
    del bigdl_type
    session = _session()
    slots = session.slots()
    if session.master.startswith("local"):
        return 1, slots
    cores = min(slots, int(session.setting("spark.executor.cores") or 1))
    return max(1, slots // cores), cores


def redire_spark_logs(bigdl_type: str = "float", log_path: str | None = None) -> None:
    """Let Spark's log from INFO on go to a file, by default `bigdl.log` here, and only errors to the console."""
    del bigdl_type
    _session().log_to_file(str(Path(log_path or "bigdl.log").absolute()))


def show_bigdl_info_logs(bigdl_type: str = "float") -> None:
    """Show the messages of Keraunos on how a training goes."""
    del bigdl_type
    ours = logging.getLogger("keraunos")
    ours.setLevel(logging.INFO)
    if not ours.hasHandlers():
        ours.addHandler(logging.StreamHandler())


def create_tmp_path() -> str:
    """Returns a path for a temporary file, which is not there yet."""
    with tempfile.NamedTemporaryFile(prefix="bigdl") as file:
        return file.name


def text_from_path(path: str) -> Any:
    """Returns the first line of a text file under any Hadoop path."""
    return _session().text_file(path).first()


def get_local_file(a_path: str) -> str:
    """Returns a local path of a file: its own, or that of a copy where it lies elsewhere."""
    if not is_distributed(a_path):
        return a_path
    (_, content), *_ = _session().binary_files(a_path).take(1)
    local = create_tmp_path()
    Path(local).write_bytes(content)
    return local


def is_distributed(path: str) -> bool:
    """Returns whether a path names a file system."""
    return "://" in path
