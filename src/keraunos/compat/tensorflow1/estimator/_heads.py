"""From logits to a loss, measures and predictions. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keraunos.compat.tensorflow1 import _mode
from keraunos.compat.tensorflow1.estimator._specs import EstimatorSpec, ModeKeys
from keraunos.compat.tensorflow1.estimator.export import ClassificationOutput, PredictOutput, RegressionOutput
from keraunos.compat.tensorflow1.tensorflow_estimator.python.estimator.canned.prediction_keys import PredictionKeys

_v1 = _mode.tensorflow_1()


@dataclass(frozen=True)
class EstimatorHead(ABC):
    """The loss and predictions from logits; by default the loss of a batch is the sum over its rows."""

    weight_column: Any = None
    loss_reduction: str = "weighted_sum"

    @property
    @abstractmethod
    def logits(self) -> int:
        """How many logits there are a row."""

    @abstractmethod
    def predictions(self, logits: Any) -> dict[str, Any]:
        """Returns the predictions by key."""

    @abstractmethod
    def losses(self, logits: Any, labels: Any) -> Any:
        """Returns a loss for each row, as a column."""

    @abstractmethod
    def measures(self, predictions: Mapping[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        """Returns the metrics of an evaluation."""

    @abstractmethod
    def exported(self, predictions: Mapping[str, Any]) -> Any:
        """Returns the default outputs of an exported model."""

    def spec(self, features: Any, labels: Any, mode: str, logits: Any, optimizer: Any) -> EstimatorSpec:
        """Returns the specification of a model for one mode."""
        predictions = self.predictions(logits)
        exported = self.exported(predictions)
        outputs = {"serving_default": exported, "predict": PredictOutput(predictions)}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        if labels is None:
            raise ValueError("`labels` must be given in training and evaluation. Received: None from `input_fn`.")
        weights = self._weights(features)
        losses = self.losses(logits, _column(labels))
        loss = _v1.losses.compute_weighted_loss(losses, weights, reduction=self.loss_reduction)
        if mode == ModeKeys.EVAL:
            measured = {
                "average_loss": _v1.metrics.mean(losses, weights),
                **self.measures(predictions, _column(labels), weights),
            }
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=measured)
        train_op = optimizer.minimize(loss, global_step=_v1.train.get_global_step())
        updates = _v1.get_collection(_v1.GraphKeys.UPDATE_OPS)
        return EstimatorSpec(mode, predictions, loss, _v1.group(train_op, *updates) if updates else train_op)

    def _weights(self, features: Any) -> Any:
        if self.weight_column is None:
            return 1.0
        name = self.weight_column if isinstance(self.weight_column, str) else self.weight_column.name
        return _column(_v1.cast(features[name], _v1.float32))


@dataclass(frozen=True)
class ClassHead(EstimatorHead):
    """Classes: two with one logit, or more with one each."""

    n_classes: int = 2
    label_vocabulary: Sequence[str] | None = None

    @property
    def logits(self) -> int:
        """One per class, or one for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Returns the predictions by key."""
        both = _v1.concat([_v1.zeros_like(logits), logits], axis=-1) if self.logits == 1 else logits
        ids = _v1.expand_dims(_v1.argmax(both, axis=-1), axis=-1)
        found = {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.PROBABILITIES: _v1.nn.softmax(both),
            PredictionKeys.CLASS_IDS: ids,
            PredictionKeys.CLASSES: self._classes(ids),
            PredictionKeys.ALL_CLASS_IDS: _each_row(logits, _v1.range(self.n_classes)),
            PredictionKeys.ALL_CLASSES: _each_row(logits, _v1.constant(self._names)),
        }
        return {PredictionKeys.LOGISTIC: _v1.sigmoid(logits), **found} if self.logits == 1 else found

    def losses(self, logits: Any, labels: Any) -> Any:
        """Returns the cross entropy of each row."""
        ids = self._ids(labels)
        if self.logits == 1:
            return _v1.nn.sigmoid_cross_entropy_with_logits(labels=_v1.cast(ids, _v1.float32), logits=logits)
        losses = _v1.nn.sparse_softmax_cross_entropy_with_logits(labels=_v1.squeeze(ids, -1), logits=logits)
        return _v1.expand_dims(losses, -1)

    def measures(self, predictions: Mapping[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        """Returns the accuracy and, of two classes, the areas under curves, precision and recall."""
        metrics, ids = _v1.metrics, self._ids(labels)
        chosen = predictions[PredictionKeys.CLASS_IDS]
        found = {"accuracy": metrics.accuracy(ids, chosen, weights)}
        if self.logits > 1:
            return found
        chance, truth = predictions[PredictionKeys.LOGISTIC], _v1.cast(ids, _v1.bool)
        return {
            **found,
            "precision": metrics.precision(ids, chosen, weights),
            "recall": metrics.recall(ids, chosen, weights),
            "prediction/mean": metrics.mean(chance, weights),
            "label/mean": metrics.mean(_v1.cast(ids, _v1.float32), weights),
            "auc": metrics.auc(truth, chance, weights),
            "auc_precision_recall": metrics.auc(
                truth, chance, weights, curve="PR", summation_method="careful_interpolation"
            ),
        }

    def exported(self, predictions: Mapping[str, Any]) -> ClassificationOutput:
        """Returns every class with its probability."""
        return ClassificationOutput(predictions[PredictionKeys.PROBABILITIES], predictions[PredictionKeys.ALL_CLASSES])

    @property
    def _names(self) -> list[str]:
        return list(self.label_vocabulary or map(str, range(self.n_classes)))

    def _classes(self, ids: Any) -> Any:
        if self.label_vocabulary is None:
            return _v1.as_string(ids)
        return _v1.gather(_v1.constant(self._names), ids)

    def _ids(self, labels: Any) -> Any:
        if self.label_vocabulary is None:
            ids = _v1.cast(labels, _v1.int64)
        else:
            from keraunos.compat.tensorflow1.contrib.lookup import index_table_from_tensor

            ids = index_table_from_tensor(self._names).lookup(labels)
        inside = _v1.logical_and(ids >= 0, ids < self.n_classes)
        message = [f"Labels must be classes from 0 to {self.n_classes - 1}, or names in `label_vocabulary`. Received:"]
        with _v1.control_dependencies([_v1.Assert(_v1.reduce_all(inside), [*message, labels])]):
            return _v1.identity(ids)


@dataclass(frozen=True)
class NumberHead(EstimatorHead):
    """Numbers, by their squared differences."""

    label_dimension: int = 1

    @property
    def logits(self) -> int:
        """One a number."""
        return self.label_dimension

    def predictions(self, logits: Any) -> dict[str, Any]:
        """Returns the numbers."""
        return {PredictionKeys.PREDICTIONS: logits}

    def losses(self, logits: Any, labels: Any) -> Any:
        """Returns the squared differences."""
        return _v1.math.squared_difference(logits, _v1.cast(labels, _v1.float32))

    def measures(self, predictions: Mapping[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        """Returns the means of predictions and labels."""
        return {
            "prediction/mean": _v1.metrics.mean(predictions[PredictionKeys.PREDICTIONS], weights),
            "label/mean": _v1.metrics.mean(_v1.cast(labels, _v1.float32), weights),
        }

    def exported(self, predictions: Mapping[str, Any]) -> RegressionOutput:
        """Returns the numbers."""
        return RegressionOutput(predictions[PredictionKeys.PREDICTIONS])


def _column(values: Any) -> Any:
    """Values with a second dimension."""
    tensor = _v1.convert_to_tensor(values)
    return _v1.expand_dims(tensor, -1) if tensor.shape.ndims == 1 else tensor


def _each_row(logits: Any, values: Any) -> Any:
    return _v1.tile(_v1.expand_dims(values, 0), [_v1.shape(logits)[0], 1])
