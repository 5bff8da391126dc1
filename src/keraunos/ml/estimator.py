"""`KerasEstimator`: any model, its outputs as arrays. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from keraunos.ml.fitter import Fitter
from keraunos.ml.model import FittedModel, Trained, distinct
from keraunos.ml.params import HasPredictionCols
from keraunos.ml.rendering import ArrayColumns, output_names
from keraunos.ml.signature import Signature
from keraunos.ml.training_params import TrainingOptions


class EstimatorOptions(TrainingOptions, total=False):
    """The keywords of `KerasEstimator`."""

    predictionCol: str | Mapping[str, str]


class KerasModel(FittedModel, HasPredictionCols):
    """A trained model that adds one column for each output, with the output's own dimensions."""

    def _rendering(self) -> ArrayColumns:
        ports = self._trained.signature.outputs
        columns = output_names(ports, self.getPredictionCol())
        distinct([column for column in columns if column])
        return ArrayColumns(ports, columns)


class KerasEstimator(Fitter, HasPredictionCols):
    """Trains any compiled Keras model on a DataFrame; `explainParams()` describes every Param.

    The fitted `KerasModel` adds the model's outputs as arrays. `KerasClassifier` and `KerasRegressor` add the
    columns that Spark's evaluators read.
    """

    def __init__(self, **params: Unpack[EstimatorOptions]) -> None:
        super().__init__()
        self.setParams(**params)

    def _check(self, model: Any, signature: Signature) -> None:
        output_names(signature.outputs, self.getPredictionCol())

    def _fitted(self, trained: Trained) -> KerasModel:
        return KerasModel(trained)
