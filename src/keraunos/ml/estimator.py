"""`KerasEstimator`: any model, its outputs as arrays. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from keraunos.batch import Arrays
from keraunos.ml.array_outputs import GivesArrays
from keraunos.ml.keras.fitted import KerasFitted
from keraunos.ml.keras.fitter import KerasFitter
from keraunos.ml.keras.params import KerasTrainingOptions
from keraunos.ml.model import Trained
from keraunos.ml.params import HasPredictionCols
from keraunos.ml.rendering import output_names, served_dtype
from keraunos.ml.signature import Signature


class EstimatorOptions(KerasTrainingOptions, total=False):
    """The keywords of `KerasEstimator`."""

    predictionCol: str | Mapping[str, str]


class KerasModel(KerasFitted, GivesArrays):
    """A trained model that adds one column for each output, with the output's own dimensions."""

    def predict(self, row: Any) -> Arrays:
        """The output for one row, on the driver: an array, or a dict of arrays by output where there are several.

        A row is a spark.ml vector, a list or an array; for a model with several inputs a dict of these by input name.
        """
        outputs, ports = self._outputs(row), self._trained.signature.outputs
        if not isinstance(outputs, dict):
            return np.asarray(outputs[0].astype(served_dtype(ports[0].dtype)))
        return {port.name: np.asarray(outputs[port.name][0].astype(served_dtype(port.dtype))) for port in ports}


class KerasEstimator(KerasFitter, HasPredictionCols):
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
