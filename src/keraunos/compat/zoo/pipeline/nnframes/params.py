"""The Params of NNFrames, by Analytics Zoo's names. Runs on the driver."""

from __future__ import annotations

from typing import Any, Self

from pyspark.ml.param import TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol

from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step
from keraunos.errors import JobError
from keraunos.ml.declaration import Declaring, param, readable_param


def _whole(value: int) -> int:
    return int(TypeConverters.toInt(value))


def _number(value: float) -> float:
    return float(TypeConverters.toFloat(value))


def _flag(value: bool) -> bool:
    return bool(TypeConverters.toBoolean(value))


class NNStage(Declaring):
    """Params with setters as Analytics Zoo writes them."""

    def _put(self, name: str, value: Any) -> Self:
        # Whatever `float` takes, numpy's numbers among them; spark.ml's converter alone refuses some and stores None.
        return super()._put(name, float(value) if self.getParam(name).typeConverter is _number else value)

    @classmethod
    def _setter_argument(cls, name: str) -> str:  # noqa: ARG003 - others name it after the Param
        return "val"


class HasTotalBatchSize(NNStage):
    """How many rows are taken at once, over all workers."""

    batchSize, getBatchSize = readable_param("rows of a step over all workers", _whole, default=1)

    def setBatchSize(self, val: int) -> Self:
        """Set `batchSize`."""
        if isinstance(val, bool) or not isinstance(val, int) or val < 1:
            raise JobError(f"`batchSize` must be a whole number of at least 1. Received: {val!r}.")
        return self._put("batchSize", val)


class HasThreshold(NNStage):
    """The threshold between the classes 0 and 1 of a model with one output."""

    threshold, getThreshold, setThreshold = param(
        "an output above it is of class 1, and else of class 0", _number, default=0.5
    )


class HasNNColumns(HasFeaturesCol, HasPredictionCol):  # type: ignore[misc]  # pyspark is used untyped
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
        """Returns the step."""
        return self.samplePreprocessing


class NNTrainingParams(HasTotalBatchSize, HasNNColumns, HasLabelCol):  # type: ignore[misc]  # pyspark is used untyped
    """The Params of a training; rows are stored as samples whatever `cachingSample` is."""

    maxEpoch, getMaxEpoch, setMaxEpoch = param("how often every row is used", _whole, default=50)
    learningRate, getLearningRate, setLearningRate = param(
        "the learning rate, in place of the optim method's", _number, default=1e-3
    )
    learningRateDecay, getLearningRateDecay, setLearningRateDecay = param(
        "the decay of the learning rate, in place of the optim method's", _number, default=0.0
    )
    cachingSample, isCachingSample, setCachingSample = param("whether rows are kept as samples", _flag, default=True)

    def setLabelCol(self, value: str) -> Self:
        """Set `labelCol`."""
        self._set(labelCol=value)
        return self
