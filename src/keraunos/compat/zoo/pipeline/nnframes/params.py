"""The Params of NNFrames, by Analytics Zoo's names. Runs on the driver."""

from __future__ import annotations

from typing import Any, Self

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol

from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step
from keraunos.errors import JobError


def _param(name: str, told: str, convert: Any) -> Any:
    return Param(Params._dummy(), name, told, typeConverter=convert)


class HasBatchSize(Params):  # type: ignore[misc]  # pyspark is used untyped
    """How many rows are taken at once, over all workers."""

    batchSize = _param("batchSize", "rows of a step over all workers", TypeConverters.toInt)

    def setBatchSize(self, val: int) -> Self:
        """Set `batchSize`."""
        if isinstance(val, bool) or not isinstance(val, int) or val < 1:
            raise JobError(f"`batchSize` must be a whole number of at least 1. Received: {val!r}.")
        self._set(batchSize=val)
        return self

    def getBatchSize(self) -> int:
        """`batchSize`."""
        return int(self.getOrDefault(self.batchSize))


class HasThreshold(Params):  # type: ignore[misc]  # pyspark is used untyped
    """What divides the classes 0 and 1 of a model with one output."""

    threshold = _param("threshold", "an output above it is of class 1, and else of class 0", TypeConverters.toFloat)

    def setThreshold(self, val: float) -> Self:
        """Set `threshold`."""
        self._set(threshold=float(val))
        return self

    def getThreshold(self) -> float:
        """`threshold`."""
        return float(self.getOrDefault(self.threshold))


class HasColumns(HasFeaturesCol, HasPredictionCol):  # type: ignore[misc]  # pyspark is used untyped
    """The columns of features and of predictions."""

    def setFeaturesCol(self, value: str) -> Self:
        """Set `featuresCol`."""
        self._set(featuresCol=value)
        return self

    def setPredictionCol(self, value: str) -> Self:
        """Set `predictionCol`."""
        self._set(predictionCol=value)
        return self


class HasSamplePreprocessing:
    """The step from a row's values to a `Sample`."""

    samplePreprocessing: Preprocessing

    def setSamplePreprocessing(self, val: Any) -> Self:
        """Set the step: of pairs of a feature and a label in an estimator, of features in a model."""
        self.samplePreprocessing = checked_step(val, "samplePreprocessing")
        return self

    def getSamplePreprocessing(self) -> Preprocessing:
        """The step."""
        return self.samplePreprocessing


class TrainingParams(HasBatchSize, HasColumns, HasLabelCol):  # type: ignore[misc]  # pyspark is used untyped
    """The Params of a training."""

    maxEpoch = _param("maxEpoch", "how often every row is used", TypeConverters.toInt)
    learningRate = _param("learningRate", "the learning rate, in place of the optim method's", TypeConverters.toFloat)
    learningRateDecay = _param(
        "learningRateDecay", "the decay of the learning rate, in place of the optim method's", TypeConverters.toFloat
    )
    cachingSample = _param("cachingSample", "whether rows are kept as samples", TypeConverters.toBoolean)

    def setLabelCol(self, value: str) -> Self:
        """Set `labelCol`."""
        self._set(labelCol=value)
        return self

    def setMaxEpoch(self, val: int) -> Self:
        """Set `maxEpoch`."""
        self._set(maxEpoch=val)
        return self

    def getMaxEpoch(self) -> int:
        """`maxEpoch`."""
        return int(self.getOrDefault(self.maxEpoch))

    def setLearningRate(self, val: float) -> Self:
        """Set `learningRate`."""
        self._set(learningRate=float(val))
        return self

    def getLearningRate(self) -> float:
        """`learningRate`."""
        return float(self.getOrDefault(self.learningRate))

    def setLearningRateDecay(self, val: float) -> Self:
        """Set `learningRateDecay`."""
        self._set(learningRateDecay=float(val))
        return self

    def getLearningRateDecay(self) -> float:
        """`learningRateDecay`."""
        return float(self.getOrDefault(self.learningRateDecay))

    def setCachingSample(self, val: bool) -> Self:
        """Set `cachingSample`: rows are kept as samples either way."""
        self._set(cachingSample=val)
        return self

    def isCachingSample(self) -> bool:
        """`cachingSample`."""
        return bool(self.getOrDefault(self.cachingSample))
