"""`KerasRegressor`: one number for every row. Runs on the driver."""

from __future__ import annotations

from typing import Any, Unpack

from keraunos.errors import ModelError
from keraunos.ml.fitter import Fitter
from keraunos.ml.model import FittedModel, Trained
from keraunos.ml.params import HasPredictionCol
from keraunos.ml.rendering import NumberColumn
from keraunos.ml.signature import Signature
from keraunos.ml.training_params import TrainingOptions


class RegressorOptions(TrainingOptions, total=False):
    """The keywords of `KerasRegressor`."""

    predictionCol: str


class KerasRegressionModel(FittedModel, HasPredictionCol):
    """A trained regressor; adds the column that Spark's RegressionEvaluator reads."""

    def _rendering(self) -> NumberColumn:
        return NumberColumn(self.getPredictionCol())


class KerasRegressor(Fitter, HasPredictionCol):
    """Trains a compiled Keras model with one output unit on a DataFrame; `explainParams()` describes every Param."""

    def __init__(self, **params: Unpack[RegressorOptions]) -> None:
        super().__init__()
        self.setParams(**params)

    def _check(self, model: Any, signature: Signature) -> None:
        shapes = [port.shape for port in signature.outputs]
        if shapes not in ([()], [(1,)]):
            raise ModelError(
                "KerasRegressor needs a model with one output of one unit. Received: outputs of shape "
                f"{[(None, *shape) for shape in shapes]!r}. Use KerasEstimator to predict arrays or several outputs."
            )

    def _fitted(self, trained: Trained) -> KerasRegressionModel:
        return KerasRegressionModel(trained)
