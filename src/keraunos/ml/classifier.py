"""`KerasClassifier`: a class, its probability and raw scores for every row. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from keraunos.errors import ModelError
from keraunos.ml.fitter import Fitter
from keraunos.ml.heads import Head
from keraunos.ml.model import FittedModel, Trained, distinct
from keraunos.ml.params import HasPredictionCol, HasProbabilityCol, HasRawPredictionCol
from keraunos.ml.rendering import ClassColumns
from keraunos.ml.signature import Signature
from keraunos.ml.training_params import TrainingOptions


class ClassifierOptions(TrainingOptions, total=False):
    """The keywords of `KerasClassifier`."""

    predictionCol: str
    probabilityCol: str
    rawPredictionCol: str


class KerasClassificationModel(FittedModel, HasPredictionCol, HasProbabilityCol, HasRawPredictionCol):
    """A trained classifier; adds the columns that Spark's classification evaluators read."""

    @property
    def numClasses(self) -> int:
        """How many classes the model tells apart."""
        return self._trained_head().classes

    def _rendering(self) -> ClassColumns:
        names = [self.getPredictionCol(), self.getProbabilityCol(), self.getRawPredictionCol()]
        distinct([name for name in names if name])
        return ClassColumns(self._trained_head(), *names)

    def _trained_head(self) -> Head:
        assert self._trained.head is not None
        return Head.from_json(self._trained.head)


class KerasClassifier(Fitter, HasPredictionCol, HasProbabilityCol, HasRawPredictionCol):
    """Trains a compiled Keras classifier on a DataFrame; `explainParams()` describes every Param.

    The model ends in one softmax unit for each class, or in one sigmoid unit for two classes; with a loss of
    `from_logits=True` in the same without the activation. Labels are class numbers from 0, as StringIndexer gives
    them, or one-hot arrays with `categorical_crossentropy`.
    """

    def __init__(self, **params: Unpack[ClassifierOptions]) -> None:
        super().__init__()
        self.setParams(**params)

    def _check(self, model: Any, signature: Signature) -> None:
        self._head(model, signature)

    def _head(self, model: Any, signature: Signature) -> Mapping[str, Any]:
        if len(signature.outputs) != 1:
            names = [port.name for port in signature.outputs]
            raise ModelError(
                f"KerasClassifier needs a model with one output. Received: outputs {names!r}. Use KerasEstimator for "
                "models with several."
            )
        return Head.of(model, signature.outputs[0]).to_json()

    def _fitted(self, trained: Trained) -> KerasClassificationModel:
        return KerasClassificationModel(trained)
