"""`KerasClassifier`: a class, its probability and raw scores for every row. Runs on the driver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np
from pyspark.ml.linalg import DenseVector

from keraunos.errors import JobError, ModelError
from keraunos.ml.heads import Head, Scores
from keraunos.ml.keras.existing import Existing
from keraunos.ml.keras.fitted import KerasFitted
from keraunos.ml.keras.fitter import KerasFitter
from keraunos.ml.keras.heads import existing_head, head_of
from keraunos.ml.keras.params import KerasTrainingOptions
from keraunos.ml.keras.probabilities import warn_of_scores
from keraunos.ml.model import Trained, distinct
from keraunos.ml.params import HasPredictionCol, HasProbabilityCol, HasRawPredictionCol, HasThresholds
from keraunos.ml.preparation import Prepared
from keraunos.ml.rendering import ClassColumns, only_output
from keraunos.ml.signature import Port, Signature
from keraunos.trust import trusted_names, trusting


class ClassifierOptions(KerasTrainingOptions, total=False):
    """The keywords of `KerasClassifier`."""

    predictionCol: str
    probabilityCol: str
    rawPredictionCol: str
    thresholds: Sequence[float] | None


class KerasClassificationModel(KerasFitted, HasPredictionCol, HasProbabilityCol, HasRawPredictionCol, HasThresholds):
    """A trained classifier; adds the columns that Spark's classification evaluators read."""

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        layer: str | Sequence[str] | None = None,
        fromLogits: bool | None = None,
        trustedModules: Sequence[str] | None = None,
        **params: Any,
    ) -> Self:
        """A classifier from a Keras model that exists, without a fit; its `history` is empty.

        Args:
            model: a live Keras model, compiled or not; the path of a `.keras` file, local or any that Hadoop reads; or
                a fitted model, whose `featuresCol` and other Params of reading are taken over.
            layer: the name of a layer whose output is served in place of the model's own.
            fromLogits: whether outputs are logits, and not probabilities. Not given: as the compiled loss says or,
                without one that does, the activation of the layer that makes the output.
            trustedModules: modules, or packages, whose code a file may use, besides those in Spark's setting
                spark.keraunos.trustedModules.
            params: any Params of this class, such as `featuresCol`.
        """
        if fromLogits is not None and not isinstance(fromLogits, bool):
            raise JobError(f"`fromLogits` must be True or False. Received: {fromLogits!r}.")
        with trusting(*trusted_names(trustedModules)):
            return cls._of(model, layer, params, fromLogits)

    @classmethod
    def _head_of(cls, found: Existing, logits: bool | None) -> Mapping[str, Any]:
        output = _one_output(found.signature, "KerasClassificationModel", "KerasModel")
        return existing_head(found.model, output, logits).to_json()

    @property
    def numClasses(self) -> int:
        """How many classes the model tells apart."""
        return self._trained_head().classes

    def _rendering(self) -> ClassColumns:
        prediction, probability, raw = self.getPredictionCol(), self.getProbabilityCol(), self.getRawPredictionCol()
        distinct([name for name in (prediction, probability, raw) if name])
        return ClassColumns(self._trained_head(), prediction, probability, raw, self._checked_thresholds())

    def predict(self, row: Any) -> float:
        """The class of one row, on the driver, as `transform` gives it: of a spark.ml vector, a list or an array.

        For a model with several inputs the row is a dict of these by input name. NaN where a probability is.
        """
        thresholds = self._checked_thresholds()
        _, probability = self._scores(row)
        return (
            math.nan if np.isnan(probability).any() else float(self._trained_head().chosen(probability, thresholds)[0])
        )

    def predictRaw(self, row: Any) -> DenseVector:
        """The raw score of each class for one row, on the driver, as `transform` gives it in `rawPredictionCol`."""
        return DenseVector(self._scores(row)[0][0])

    def predictProbability(self, row: Any) -> DenseVector:
        """The probability of each class for one row, on the driver, as `transform` gives it in `probabilityCol`."""
        return DenseVector(self._scores(row)[1][0])

    def _scores(self, row: Any) -> tuple[Scores, Scores]:
        return self._trained_head().scores(only_output(self._outputs(row)))

    def _checked_thresholds(self) -> tuple[float, ...] | None:
        thresholds = self.getThresholds()
        return None if thresholds is None else _checked(thresholds, self.numClasses)

    def _trained_head(self) -> Head:
        assert self._trained.head is not None
        return Head.from_json(self._trained.head)


class KerasClassifier(KerasFitter, HasPredictionCol, HasProbabilityCol, HasRawPredictionCol, HasThresholds):
    """Trains a compiled Keras classifier on a DataFrame; `explainParams()` describes every Param.

    The model ends in one softmax unit for each class, or in one sigmoid unit for two classes; with a loss of
    `from_logits=True` in the same without the activation. Labels are class numbers from 0, as StringIndexer gives
    them, or one-hot arrays with `categorical_crossentropy`.
    """

    def __init__(self, **params: Unpack[ClassifierOptions]) -> None:
        super().__init__()
        self.setParams(**params)

    def _check(self, model: Any, signature: Signature) -> None:
        head = Head.from_json(self._head(model, signature))
        thresholds = self.getThresholds()
        if thresholds is not None:
            _checked(thresholds, head.classes)

    def _warn(self, prepared: Prepared) -> None:
        warn_of_scores(prepared.model, prepared.signature, prepared.rows)

    def _head(self, model: Any, signature: Signature) -> Mapping[str, Any]:
        return head_of(model, _one_output(signature, "KerasClassifier", "KerasEstimator")).to_json()

    def _fitted(self, trained: Trained) -> KerasClassificationModel:
        return KerasClassificationModel(trained)


def _one_output(signature: Signature, who: str, instead: str) -> Port:
    if len(signature.outputs) != 1:
        names = [port.name for port in signature.outputs]
        raise ModelError(
            f"{who} needs a model with one output. Received: outputs {names!r}. Use {instead} for models with several."
        )
    return signature.outputs[0]


def _checked(thresholds: Sequence[float], classes: int) -> tuple[float, ...]:
    if len(thresholds) != classes:
        raise JobError(
            f"`thresholds` must have one number for each of the {classes} classes of the model. Received: "
            f"{list(thresholds)!r}."
        )
    return tuple(thresholds)
