"""A training, a prediction and a measurement as Elephas means them, on RDDs. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
from pyspark import RDD

from keraunos.compat.elephas import rows
from keraunos.compat.elephas.translate import FitOptions, schedule_of, workers_of
from keraunos.compat.old_keras.compiled import as_compiled
from keraunos.errors import DataError, ModelError
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch import spark as launch
from keraunos.launch.evaluate import evaluate_rdd
from keraunos.launch.predict import predict_rdd
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.training_result import TrainingResult
from keraunos.learners.keras_archive import check_trainable, live_source
from keraunos.learners.keras_variables import write_vector
from keraunos.session.registry import session_of
from keraunos.session.session import Session

_PREDICTED_TOGETHER = 1024


@dataclass(frozen=True)
class DriverNetwork:
    """A Keras model on the driver, and what its archive needs to be read elsewhere."""

    model: Any
    custom_objects: Mapping[str, Any] = field(default_factory=dict)

    def source(self) -> ModelSource:
        """Returns the model as it is now."""
        return live_source(self.model, self.custom_objects)

    def take(self, result: TrainingResult) -> None:
        """Give the model the weights that a training led to."""
        assert result.parameters is not None
        write_vector(self.model, result.parameters)


def train(
    network: DriverNetwork,
    rdd: RDD[Any],
    plan: ExchangePlan,
    options: FitOptions,
    *,
    classes: int | None = None,
    ports: tuple[int, int] | None = None,
    memory: RuleMemory | None = None,
) -> TrainingResult:
    """Train on an RDD's elements; the network has the trained weights then. `classes` makes class numbers one-hot."""
    with as_compiled(network.model):
        return _train(network, rdd, plan, options, classes, ports, memory)


def _train(
    network: DriverNetwork,
    rdd: RDD[Any],
    plan: ExchangePlan,
    options: FitOptions,
    classes: int | None,
    ports: tuple[int, int] | None,
    memory: RuleMemory | None,
) -> TrainingResult:
    check_compiled(network.model)
    if not network.model.built:
        # Only here an element is inspected before training: nothing else determines the shape of the model.
        rows.build(network.model, rdd.first())
    columns = rows.columns_of(
        network.model, weighted=options.weighted, validated=options.validation is not None, classes=classes
    )
    validation = _validation(options.validation, columns)
    workers = workers_of(options.num_workers, rdd.getNumPartitions(), session_of(rdd).slots())
    parts = rdd if rdd.getNumPartitions() >= workers else rdd.repartition(workers)
    job = TrainingJob(
        model=network.source(),
        columns=columns,
        schedule=schedule_of(options),
        exchange=plan,
        workers=workers,
        ports=ports,
    )
    result = launch.fit(
        job,
        rows.training_records(parts, columns, validation),
        custom_objects=network.custom_objects,
        callbacks=options.callbacks,
        listeners=options.listeners,
        verbose=options.verbose,
        memory=memory,
    )
    network.take(result)
    return result


def predict(network: DriverNetwork, data: Any, session: Session, batch_rows: int = _PREDICTED_TOGETHER) -> list[Any]:
    """Returns the model's output for each row of arrays or of an RDD, in their order, on the driver."""
    columns = rows.columns_of(network.model, labels=False)
    if isinstance(data, RDD):
        records = rows.feature_records(data, columns)
    else:
        arrays = rows.record_arrays(columns, data)
        if not len(arrays[0]):
            return []
        records = _spread(session, arrays)
    found = predict_rdd(records, network.source(), columns, batch_rows, network.custom_objects)
    return list(found.collect())


def evaluate(
    network: DriverNetwork,
    features: Any,
    labels: Any,
    session: Session,
    *,
    batch_rows: int,
    weights: Any = None,
    classes: int | None = None,
) -> dict[str, float]:
    """Returns the loss and the metrics over arrays, or over an RDD of elements as `fit` takes them, by name."""
    check_compiled(network.model)
    columns = rows.columns_of(network.model, weighted=weights is not None, classes=classes)
    if isinstance(features, RDD):
        records = rows.training_records(features, columns)
    else:
        arrays = rows.record_arrays(columns, features, labels, weights)
        records = _spread(session, arrays)
    return evaluate_rdd(records, network.source(), columns, batch_rows, network.custom_objects)


def check_compiled(model: Any) -> None:
    """Refuse what is no compiled Keras model."""
    if not isinstance(model, keras.Model):
        raise ModelError(
            f"The model must be a compiled Keras model. Received: {type(model).__name__}. Give keras.Sequential or "
            "keras.Model, after `compile`."
        )
    check_trainable(model)


def _spread(session: Session, arrays: list[Any]) -> RDD[Any]:
    """Returns rows on the driver as records on executors, on no more of them than there is work for."""
    portions = -(-len(arrays[0]) // _PREDICTED_TOGETHER)
    return rows.blocks(session, arrays, min(session.slots(), portions))


def _validation(given: Any, columns: Any) -> list[Any] | None:
    """Returns the rows to validate on, an array for each column of a record but the last, which says that they are."""
    if given is None:
        return None
    if isinstance(given, RDD):
        return rows.records_to_arrays(given.collect(), columns)
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise DataError(
            "`validation_data` must be (features, labels), with weights if rows have any, or an RDD of elements like "
            f"those to train on. Received: {type(given).__name__}."
        )
    features, labels, *weights = given
    if columns.weight is not None and not weights:
        weights = [np.ones(len(labels))]
    return rows.record_arrays(columns, features, labels, *weights)
