"""Analytics Zoo's `zoo.feature.common`: steps from a value to a sample, and `FeatureSet`.

Steps run on executors and are made on the driver; the rest runs on the driver.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step

# Programs take `sys`, `os` and `np` from here by `import *`.
from keraunos.compat.zoo.bigdl.util import common as _bigdl
from keraunos.compat.zoo.bigdl.util.common import JTensor, Sample
from keraunos.compat.zoo.feature.feature_set import FeatureSet
from keraunos.errors import DataError, JobError

__all__ = [
    "ArrayToTensor",
    "BigDLAdapter",
    "ChainedPreprocessing",
    "FeatureLabelPreprocessing",
    "FeatureSet",
    "FeatureToTupleAdapter",
    "JTensor",
    "MLlibVectorToTensor",
    "Preprocessing",
    "Sample",
    "ScalarToTensor",
    "SeqToMultipleTensors",
    "SeqToTensor",
    "TensorToSample",
    "ToTuple",
    "np",
    "os",
    "sys",
]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__

_ELSEWHERE = {
    "Relation": "read pairs with spark.read.csv or spark.read.parquet",
    "Relations": "read pairs with spark.read.csv or spark.read.parquet",
    "SampleToMiniBatch": "leave it out: a training makes its batches from `batch_size`",
}

Floats = npt.NDArray[np.float32]


class ChainedPreprocessing(Preprocessing):
    """Steps, one after the other."""

    def __init__(self, transformers: Sequence[Any], bigdl_type: str = "float") -> None:
        del bigdl_type
        self.transformers = [checked_step(each, "transformers") for each in transformers]

    @property
    def draws(self) -> bool:
        """Whether any of them uses random numbers."""
        return any(each.draws for each in self.transformers)

    def transform(self, value: Any) -> Any:
        """Returns the result of the last step for a value."""
        for each in self.transformers:
            value = each.transform(value)
        return value


class ScalarToTensor(Preprocessing):
    """A number as an array of one."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def transform(self, value: Any) -> Floats:
        """Returns the array."""
        found = _numbers(value, "ScalarToTensor")
        if found.size != 1:
            raise DataError(f"ScalarToTensor must be given numbers. Received: {_told(value)}. Use SeqToTensor.")
        return found.reshape(1)


class SeqToTensor(Preprocessing):
    """A number, an array or a vector as an array of that size; without one it has one dimension."""

    def __init__(self, size: Sequence[int] = (), bigdl_type: str = "float") -> None:
        del bigdl_type
        self.size = _sizes(size, "size")

    def transform(self, value: Any) -> Floats:
        """Returns the array."""
        return _shaped(_numbers(value, type(self).__name__), self.size, type(self).__name__)


class ArrayToTensor(SeqToTensor):
    """An array as an array of that size."""

    def __init__(self, size: Sequence[int], bigdl_type: str = "float") -> None:
        super().__init__(size, bigdl_type)


class MLlibVectorToTensor(SeqToTensor):
    """A vector as an array of that size."""

    def __init__(self, size: Sequence[int], bigdl_type: str = "float") -> None:
        super().__init__(size, bigdl_type)


class SeqToMultipleTensors(Preprocessing):
    """An array or a vector, cut into arrays of those sizes."""

    def __init__(self, size: Sequence[Sequence[int]] = (), bigdl_type: str = "float") -> None:
        del bigdl_type
        if not size or not all(isinstance(each, (list, tuple)) for each in size):
            raise JobError(f"`size` must be a list of sizes, such as [[2], [4]]. Received: {size!r}.")
        self.size = [_sizes(each, "size") for each in size]

    def transform(self, value: Any) -> list[Floats]:
        """Returns the arrays."""
        found = _numbers(value, "SeqToMultipleTensors").reshape(-1)
        lengths = [int(np.prod(each)) for each in self.size]
        if found.size != sum(lengths):
            raise DataError(
                f"SeqToMultipleTensors must be given {sum(lengths)} numbers, for {self.size}. Received: {found.size}."
            )
        parts = np.split(found, np.cumsum(lengths)[:-1])
        return [part.reshape(each) for part, each in zip(parts, self.size, strict=True)]


class TensorToSample(Preprocessing):
    """An array, or a list of them, as a record without a label."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def transform(self, value: Any) -> Sample:
        """Returns the record."""
        return Sample.from_ndarray(value, [])


class FeatureLabelPreprocessing(Preprocessing):
    """A pair of a feature and a label, which may be `None`, as a record; each has its own step."""

    def __init__(self, feature_transformer: Any, label_transformer: Any, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.feature_transformer = checked_step(feature_transformer, "feature_transformer")
        self.label_transformer = checked_step(label_transformer, "label_transformer")

    @property
    def draws(self) -> bool:
        """Whether one of them uses random numbers."""
        return self.feature_transformer.draws or self.label_transformer.draws

    def transform(self, value: Any) -> Sample:
        """Returns the record."""
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise DataError(
                f"FeatureLabelPreprocessing must be given pairs of a feature and a label. Received: {_told(value)}. "
                "Put ToTuple() before it."
            )
        feature, label = value
        made = self.feature_transformer.transform(feature)
        if isinstance(made, Sample):
            return made
        return Sample.from_ndarray(made, [] if label is None else self.label_transformer.transform(label))


class FeatureToTupleAdapter(Preprocessing):
    """A feature alone, for a step that takes pairs of a feature and a label."""

    def __init__(self, sample_transformer: Any, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.sample_transformer = checked_step(sample_transformer, "sample_transformer")

    @property
    def draws(self) -> bool:
        """Whether the step uses random numbers."""
        return self.sample_transformer.draws

    def transform(self, value: Any) -> Any:
        """Returns the step's result for the feature, without a label."""
        return self.sample_transformer.transform((value, None))


class BigDLAdapter(Preprocessing):
    """One of BigDL's steps as one of Analytics Zoo's."""

    def __init__(self, bigdl_transformer: Any, bigdl_type: str = "float") -> None:
        del bigdl_type
        self.bigdl_transformer = checked_step(bigdl_transformer, "bigdl_transformer")

    @property
    def draws(self) -> bool:
        """Whether the step uses random numbers."""
        return self.bigdl_transformer.draws

    def transform(self, value: Any) -> Any:
        """Returns the step's result."""
        return self.bigdl_transformer.transform(value)


class ToTuple(Preprocessing):
    """A feature as a pair with no label."""

    def __init__(self, bigdl_type: str = "float") -> None:
        del bigdl_type

    def transform(self, value: Any) -> tuple[Any, None]:
        """Returns the pair."""
        return value, None


def _numbers(value: Any, step: str) -> Floats:
    plain = value.toArray() if hasattr(value, "toArray") else value
    try:
        found = np.asarray(plain)
        if found.dtype.kind in "biuf":
            return found.astype(np.float32)
    except ValueError:
        pass
    raise DataError(f"{step} must be given numbers, arrays of numbers, or vectors. Received: {_told(value)}.")


def _shaped(found: Floats, size: Sequence[int], step: str) -> Floats:
    if not size:
        return found.reshape(1) if found.ndim == 0 else found
    if int(np.prod(size)) != found.size:
        raise DataError(f"{step} must be given {int(np.prod(size))} numbers, for {list(size)}. Received: {found.size}.")
    return found.reshape(size)


def _sizes(size: Any, argument: str) -> list[int]:
    if not isinstance(size, (list, tuple)) or not all(isinstance(each, int) and each > 0 for each in size):
        raise JobError(f"`{argument}` must be a list of lengths, such as [28, 28]. Received: {size!r}.")
    return list(size)


def _told(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise JobError(f"zoo.feature.common.{name} is not here. Instead, {_ELSEWHERE[name]}.")
    return _bigdl.passed_on("zoo.feature.common", name)
