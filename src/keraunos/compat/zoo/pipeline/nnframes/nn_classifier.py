"""Analytics Zoo's `NNEstimator`, `NNClassifier` and their models: spark.ml's stages around a model of Keras.

Runs on the driver.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

from pyspark.ml import Estimator, Model
from pyspark.ml.util import MLReadable, MLWritable

from keraunos.compat.zoo.bigdl.optim.methods import SGD, OptimMethod
from keraunos.compat.zoo.bigdl.optim.summaries import TrainSummary, ValidationSummary
from keraunos.compat.zoo.bigdl.optim.triggers import Trigger, trigger_named
from keraunos.compat.zoo.bigdl.optim.validation import ValidationMethod
from keraunos.compat.zoo.bigdl.transform.vision.preprocessing import Preprocessing, checked_step
from keraunos.compat.zoo.feature.common import (
    ChainedPreprocessing,
    FeatureLabelPreprocessing,
    ScalarToTensor,
    SeqToMultipleTensors,
    SeqToTensor,
    TensorToSample,
    ToTuple,
)
from keraunos.compat.zoo.pipeline.nnframes import serving, step_files
from keraunos.compat.zoo.pipeline.nnframes.net_of import net_of
from keraunos.compat.zoo.pipeline.nnframes.params import (
    HasNNColumns,
    HasSamplePreprocessing,
    HasThreshold,
    HasTotalBatchSize,
    NNTrainingParams,
)
from keraunos.compat.zoo.pipeline.nnframes.training import CheckpointSettings, Validation, train
from keraunos.errors import JobError, one_of
from keraunos.ml.persistence import Parts, PartsReader, PartsWriter

_LEVELS = ("DRAM", "DISK_AND_DRAM")


class NNEstimator(Estimator, NNTrainingParams, HasSamplePreprocessing):  # type: ignore[misc]  # pyspark is used untyped
    """Trains a model on two columns of a DataFrame. `fit` trains the model itself, from its current weights.

    Args:
        model: a model of zoo.pipeline.api.keras, of bigdl.nn.layer or of Keras, or a TFNet that is trained.
        criterion: one of bigdl.nn.criterion's, whose classes count from 1, or a loss of Keras.
        feature_preprocessing: the size of the model's input, a list of sizes for several inputs, or a step that returns
            arrays.
        label_preprocessing: the same for the label.
        bigdl_type: has no effect.
    """

    def __init__(
        self,
        model: Any,
        criterion: Any,
        feature_preprocessing: Any = None,
        label_preprocessing: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        super().__init__()
        self.model = net_of(model)
        # A copy gets its own model when it is fitted.
        self.shares_model = False
        self.criterion = criterion
        self.setSamplePreprocessing(
            FeatureLabelPreprocessing(
                _step(feature_preprocessing, "feature_preprocessing"), _step(label_preprocessing, "label_preprocessing")
            )
        )
        self.optimMethod: OptimMethod = SGD()
        self.endWhen: Trigger | None = None
        self.validation: Validation | None = None
        self.checkpoint: CheckpointSettings | None = None
        self.train_summary: TrainSummary | None = None
        self.validation_summary: ValidationSummary | None = None
        self.clipping: tuple[tuple[float, float] | None, float | None] = (None, None)
        self.dataCacheLevel: str | tuple[str, int] = "DRAM"

    def setOptimMethod(self, val: Any) -> Self:
        """Set the optim method; SGD by default."""
        if not isinstance(val, OptimMethod):
            raise JobError(f"The optim method must be one of bigdl.optim.optimizer's. Received: {val!r}.")
        self.optimMethod = val
        return self

    def getOptimMethod(self) -> OptimMethod:
        """Returns the optim method."""
        return self.optimMethod

    def setEndWhen(self, trigger: Any) -> Self:
        """Set when the training ends, in place of `maxEpoch`."""
        self.endWhen = trigger_named(trigger)
        return self

    def getEndWhen(self) -> Trigger | None:
        """When the training ends."""
        return self.endWhen

    def setDataCacheLevel(self, level: str, numSlice: int | None = None) -> Self:
        """Set where rows are stored: in memory while they fit (`DRAM`), or in mapped files (`DISK_AND_DRAM`)."""
        if level not in _LEVELS:
            raise JobError(one_of("level", level, _LEVELS) + " Persistent memory is a folder: see spark.local.dir.")
        self.dataCacheLevel = level if numSlice is None else (level, numSlice)
        return self

    def getDataCacheLevel(self) -> str | tuple[str, int]:
        """Returns where rows are stored."""
        return self.dataCacheLevel

    def setTrainSummary(self, val: TrainSummary) -> Self:
        """Note what happens in training."""
        self.train_summary = val
        return self

    def getTrainSummary(self) -> TrainSummary | None:
        """Returns the training summary."""
        return self.train_summary

    def setValidationSummary(self, val: ValidationSummary) -> Self:
        """Write the results of validations."""
        self.validation_summary = val
        return self

    def getValidationSummary(self) -> ValidationSummary | None:
        """Returns the validation summary."""
        return self.validation_summary

    def setValidation(self, trigger: Any, val_df: Any, val_method: Any, batch_size: int) -> Self:
        """Measure methods on other rows, which are collected to the driver, during the training."""
        methods = list(val_method) if isinstance(val_method, Sequence) else [val_method]
        if not methods or not all(isinstance(each, ValidationMethod) for each in methods):
            raise JobError(
                "`val_method` must be a list of bigdl.optim.optimizer's validation methods, such as [Top1Accuracy()]. "
                f"Received: {val_method!r}."
            )
        self.validation = Validation(trigger_named(trigger), val_df, tuple(methods), int(batch_size))
        return self

    def getValidation(self) -> list[Any] | None:
        """Returns the trigger, the rows, the methods and the batch size, or `None`."""
        found = self.validation
        return None if found is None else [found.trigger, found.rows, list(found.methods), found.batch_size]

    def setCheckpoint(self, path: str, trigger: Any, isOverWrite: bool = True) -> Self:
        """Save the model in a folder of the driver: as `model.keras`, or with the number of steps in its name."""
        self.checkpoint = CheckpointSettings(path, trigger_named(trigger), bool(isOverWrite))
        return self

    def getCheckpoint(self) -> list[Any] | None:
        """Returns the folder, the trigger and whether one file is written again and again, or `None`."""
        found = self.checkpoint
        return None if found is None else [found.path, found.trigger, found.over_write]

    def setConstantGradientClipping(self, min: float, max: float) -> Self:  # noqa: A002 - Analytics Zoo's names
        """Cut each element of the gradient to a range."""
        self.clipping = ((float(min), float(max)), self.clipping[1])
        return self

    def setGradientClippingByL2Norm(self, clip_norm: float) -> Self:
        """Scale a gradient whose norm over all variables is larger down to this norm."""
        self.clipping = (self.clipping[0], float(clip_norm))
        return self

    def clearGradientClipping(self) -> Self:
        """Clip no more."""
        self.clipping = (None, None)
        return self

    def copy(self, extra: Mapping[Any, Any] | None = None) -> Self:
        """Returns a copy with other Params, which does not train this one's model but one like it."""
        copied: Self = super().copy(None if extra is None else dict(extra))
        copied.shares_model = True
        copied.optimMethod = copy.deepcopy(self.optimMethod)
        return copied

    def _fit(self, dataset: Any) -> NNModel:
        train(self, dataset)
        return self._create_model()

    def _create_model(self) -> NNModel:
        return self._served(NNModel)

    def _served(self, kind: type[NNModel]) -> NNModel:
        made = kind(self.model).setSamplePreprocessing(ChainedPreprocessing([ToTuple(), self.samplePreprocessing]))
        return made.setFeaturesCol(self.getFeaturesCol()).setPredictionCol(self.getPredictionCol())


class NNModel(Model, HasTotalBatchSize, HasNNColumns, HasSamplePreprocessing, MLReadable, MLWritable):  # type: ignore[misc]  # pyspark is used untyped
    """Adds a column with a model's output for each row, as an array of floats.

    Args:
        model: a model of zoo.pipeline.api.keras, of bigdl.nn.layer or of Keras, or a TFNet.
        feature_preprocessing: the size of the model's input, a list of sizes for several inputs, or a step that returns
            arrays.
        bigdl_type: has no effect.
    """

    def __init__(self, model: Any, feature_preprocessing: Any = None, bigdl_type: str = "float") -> None:
        del bigdl_type
        super().__init__()
        self._setDefault(batchSize=serving.rows_at_once())
        self.model = net_of(model)
        self.setSamplePreprocessing(
            ChainedPreprocessing([_step(feature_preprocessing, "feature_preprocessing"), TensorToSample()])
        )

    def copy(self, extra: Mapping[Any, Any] | None = None) -> Self:
        """Returns a copy with other Params; the model is shared."""
        copied: Self = super().copy(None if extra is None else dict(extra))
        return copied

    def write(self) -> PartsWriter:
        """Returns a writer that saves to any Hadoop path."""
        return PartsWriter(self)

    @classmethod
    def read(cls) -> PartsReader[Any]:
        """Returns a reader of what `write` saved."""
        return PartsReader(cls)

    def _transform(self, dataset: Any) -> Any:
        return serving.with_predictions(self, dataset, threshold=None)

    def _to_parts(self) -> Parts:
        return serving.to_parts(self.model, step_files.to_json(self.samplePreprocessing))

    @classmethod
    def _from_parts(cls, parts: Parts, custom_objects: Mapping[str, Any]) -> Self:
        model, step = serving.from_parts(parts, custom_objects)
        return cls(model).setSamplePreprocessing(step_files.from_json(step))


class NNClassifier(NNEstimator):
    """Trains a classifier on a column of numbers; its `NNClassifierModel` returns numbers."""

    def __init__(
        self, model: Any, criterion: Any, feature_preprocessing: Any = None, bigdl_type: str = "float"
    ) -> None:
        super().__init__(model, criterion, feature_preprocessing, ScalarToTensor(), bigdl_type)

    def _create_model(self) -> NNModel:
        return self._served(NNClassifierModel)


class NNClassifierModel(NNModel, HasThreshold):
    """Adds a column with the class of each row, as a number: from 1, whatever the criterion.

    With one output, it is 1 where that is above `threshold`, and else 0.
    """

    def _transform(self, dataset: Any) -> Any:
        return serving.with_predictions(self, dataset, threshold=self.getThreshold())


class _Refused:
    """XGBoost's classes, which have their own package."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise _xgboost(type(self).__name__)

    @classmethod
    def loadModel(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise _xgboost(cls.__name__)

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise _xgboost(cls.__name__)


class XGBClassifier(_Refused):
    """Refused: use xgboost.spark."""


class XGBClassifierModel(_Refused):
    """Refused: use xgboost.spark."""


class XGBRegressor(_Refused):
    """Refused: use xgboost.spark."""


class XGBRegressorModel(_Refused):
    """Refused: use xgboost.spark."""


def _step(given: Any, argument: str) -> Preprocessing:
    """Returns the step for a size, a list of sizes or a step."""
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return SeqToTensor()
    if isinstance(given, (list, tuple)):
        several = isinstance(given[0], (list, tuple))
        return SeqToMultipleTensors(list(given)) if several else SeqToTensor(list(given))
    return checked_step(given, argument)


def _xgboost(name: str) -> JobError:
    return JobError(
        f"zoo.pipeline.nnframes.{name} is not here: trees are no networks. Expected: a model of Keras. Received: "
        f"{name}. Use xgboost.spark, which has SparkXGBClassifier and SparkXGBRegressor."
    )
