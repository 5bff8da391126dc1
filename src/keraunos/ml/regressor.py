"""`KerasRegressor`: one number for every row. Runs on the driver."""

from __future__ import annotations

from typing import Any, Unpack

from keraunos.errors import ModelError
from keraunos.ml.keras.existing import Existing
from keraunos.ml.keras.fitted import KerasFitted
from keraunos.ml.keras.fitter import KerasFitter
from keraunos.ml.keras.params import KerasTrainingOptions
from keraunos.ml.model import Trained
from keraunos.ml.params import HasPredictionCol
from keraunos.ml.rendering import NumberColumn, only_output
from keraunos.ml.signature import Signature


class RegressorOptions(KerasTrainingOptions, total=False):
    """The keywords of `KerasRegressor`."""

    predictionCol: str


class KerasRegressionModel(KerasFitted, HasPredictionCol):
    """A trained regressor; adds the column that Spark's RegressionEvaluator reads."""

    @classmethod
    def _head_of(cls, found: Existing, logits: bool | None) -> None:  # noqa: ARG003 - for classifiers
        _check_one_unit(found.signature, "KerasRegressionModel", "KerasModel")

    def predict(self, row: Any) -> float:
        """The number for one row, on the driver, as `transform` gives it: of a spark.ml vector, a list or an array.

        For a model with several inputs the row is a dict of these by input name.
        """
        return float(only_output(self._outputs(row)).reshape(-1)[0])

    def _rendering(self) -> NumberColumn:
        return NumberColumn(self.getPredictionCol())


class KerasRegressor(KerasFitter, HasPredictionCol):
    """Trains a compiled Keras model with one output unit on a DataFrame; `explainParams()` describes every Param."""

    def __init__(self, **params: Unpack[RegressorOptions]) -> None:
        super().__init__()
        self.setParams(**params)

    def _check(self, model: Any, signature: Signature) -> None:
        _check_one_unit(signature, "KerasRegressor", "KerasEstimator")

    def _fitted(self, trained: Trained) -> KerasRegressionModel:
        return KerasRegressionModel(trained)


def _check_one_unit(signature: Signature, who: str, instead: str) -> None:
    shapes = [port.shape for port in signature.outputs]
    if shapes not in ([()], [(1,)]):
        raise ModelError(
            f"{who} needs a model with one output of one unit. Received: outputs of shape "
            f"{[(None, *shape) for shape in shapes]!r}. Use {instead} to predict arrays or several outputs."
        )
