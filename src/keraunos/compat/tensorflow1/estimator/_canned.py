"""The ready-made estimators: linear models and networks of dense layers over feature columns. Runs on the driver."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keraunos.compat.tensorflow1 import _mode
from keraunos.compat.tensorflow1.estimator._estimator import Estimator
from keraunos.compat.tensorflow1.estimator._heads import ClassHead, EstimatorHead, NumberHead
from keraunos.compat.tensorflow1.estimator._specs import EstimatorSpec

_v1 = _mode.tensorflow_1()
_SUM = "weighted_sum"


class LinearClassifier(Estimator):
    """Classes from a weighted sum of features."""

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        _refuse_partitioner(partitioner)
        head = ClassHead(weight_column, loss_reduction, _checked_classes(n_classes), label_vocabulary)
        model_fn = _linear(head, list(feature_columns), optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, None, warm_start_from)


class LinearRegressor(Estimator):
    """Numbers from a weighted sum of features."""

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        _refuse_partitioner(partitioner)
        head = NumberHead(weight_column, loss_reduction, label_dimension)
        model_fn = _linear(head, list(feature_columns), optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, None, warm_start_from)


class DNNClassifier(Estimator):
    """Classes from dense layers over features."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = _v1.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        _refuse_partitioner(input_layer_partitioner)
        head = ClassHead(weight_column, loss_reduction, _checked_classes(n_classes), label_vocabulary)
        model_fn = _dense(head, hidden_units, list(feature_columns), optimizer, activation_fn, dropout, batch_norm)
        super().__init__(model_fn, model_dir, config, None, warm_start_from)


class DNNRegressor(Estimator):
    """Numbers from dense layers over features."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = _v1.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        _refuse_partitioner(input_layer_partitioner)
        head = NumberHead(weight_column, loss_reduction, label_dimension)
        model_fn = _dense(head, hidden_units, list(feature_columns), optimizer, activation_fn, dropout, batch_norm)
        super().__init__(model_fn, model_dir, config, None, warm_start_from)


def _linear(head: EstimatorHead, columns: list[Any], optimizer: Any, combiner: str) -> Callable[..., EstimatorSpec]:
    rate = min(0.2, 1 / math.sqrt(max(1, len(columns))))

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        with _v1.variable_scope("linear"):
            logits = _v1.feature_column.linear_model(features, columns, units=head.logits, sparse_combiner=combiner)
        return head.spec(features, labels, mode, logits, _optimizer(optimizer, rate))

    return model_fn


def _dense(
    head: EstimatorHead,
    hidden: Sequence[int],
    columns: list[Any],
    optimizer: Any,
    activation: Any,
    dropout: float | None,
    batch_norm: bool,
) -> Callable[..., EstimatorSpec]:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        layers: Any = _mode.legacy_layers()
        trains = mode == "train"
        with _v1.variable_scope("dnn"):
            with _v1.variable_scope("input_from_feature_columns"):
                values = _v1.feature_column.input_layer(features, columns)
            for number, units in enumerate(hidden):
                values = layers.dense(values, units, activation=activation, name=f"hiddenlayer_{number}")
                if dropout is not None:
                    values = layers.dropout(values, dropout, training=trains)
                if batch_norm:
                    name = f"hiddenlayer_{number}/batchnorm"
                    values = layers.batch_normalization(values, momentum=0.999, training=trains, name=name)
            logits = layers.dense(values, head.logits, name="logits")
        return head.spec(features, labels, mode, logits, _optimizer(optimizer, 0.05))

    return model_fn


def _optimizer(given: Any, rate: float) -> Any:
    """Returns the given optimizer, or the one of a name; created for every graph."""
    named = {
        "Adagrad": _v1.train.AdagradOptimizer,
        "Adam": _v1.train.AdamOptimizer,
        "Ftrl": _v1.train.FtrlOptimizer,
        "RMSProp": _v1.train.RMSPropOptimizer,
        "SGD": _v1.train.GradientDescentOptimizer,
    }
    if isinstance(given, str):
        if given not in named:
            raise ValueError(f"`optimizer` must be one of {', '.join(named)}, or an object. Received: {given!r}.")
        return named[given](learning_rate=rate)
    found = given() if callable(given) and not hasattr(given, "minimize") else given
    if not hasattr(found, "minimize"):
        raise ValueError(f"`optimizer` must be one of tf.train's optimizers. Received: {found!r}.")
    return found


def _checked_classes(n_classes: int) -> int:
    if isinstance(n_classes, bool) or not isinstance(n_classes, int) or n_classes < 2:
        raise ValueError(f"`n_classes` must be a whole number of at least 2. Received: {n_classes!r}.")
    return n_classes


def _refuse_partitioner(partitioner: Any) -> None:
    if partitioner is not None:
        raise ValueError(
            "`partitioner` must be left out: it split variables for TensorFlow's parameter servers. Received: "
            f"{partitioner!r}. Parameter servers here split them themselves."
        )
