"""From a Keras model and records to a training job, and what is noted meanwhile. Runs on the driver.

Records are rows of arrays, or an RDD of `Sample`s or of lists of arrays, inputs first, then labels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim import methods
from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, combined_rule
from keraunos.compat.zoo.bigdl.optim.validation import ValidationMethod
from keraunos.compat.zoo.sample_records import rows_of, spread_arrays, spread_records
from keraunos.compat.zoo.tfpark.training_hooks import TrainingHooks
from keraunos.data.records import arrow_columns
from keraunos.errors import DataError, JobError, one_of
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import TrainingJob
from keraunos.launch.hooks import Lap
from keraunos.learners.keras_archive import check_trainable, live_source
from keraunos.ml.signature import Port, Signature

# What Analytics Zoo's names of optimizers stand for.
_METHODS: Mapping[str, Callable[[], OptimMethod]] = {
    "adagrad": functools.partial(methods.Adagrad, 0.01),
    "adadelta": functools.partial(methods.Adadelta, 0.95, 1e-8),
    "adam": methods.Adam,
    "adamax": functools.partial(methods.Adamax, epsilon=1e-8),
    "rmsprop": functools.partial(methods.RMSprop, 0.001, decayrate=0.9),
    "sgd": functools.partial(methods.SGD, 0.01),
}
_METRICS = {
    "Accuracy": "accuracy",
    "Top1Accuracy": "accuracy",
    "Top5Accuracy": "sparse_top_k_categorical_accuracy",
    "MAE": "mae",
    "AUC": "AUC",
}


@dataclass(frozen=True)
class Clipping:
    """How gradients are clipped."""

    constant: tuple[float, float] | None = None
    norm: float | None = None


class Records:
    """What is trained, evaluated or predicted on: arrays of the driver's, or an RDD."""

    def __init__(self, x: Any, y: Any, argument: str = "x") -> None:
        self.rdd = x if hasattr(x, "mapPartitions") else None
        if self.rdd is not None:
            if y is not None:
                raise JobError(f"Labels must be in the records of an RDD. Received: an RDD and {type(y).__name__}.")
            self.arrays: list[Array] = []
            return
        inputs = [np.asarray(each) for each in (x if isinstance(x, (list, tuple)) else [x])]
        labels = [] if y is None else [np.asarray(each) for each in (y if isinstance(y, (list, tuple)) else [y])]
        self.arrays = [each.astype(np.float32) if each.dtype == np.float64 else each for each in (*inputs, *labels)]
        lengths = {len(each) if each.ndim else -1 for each in self.arrays}
        if len(lengths) != 1 or -1 in lengths:
            shapes = ", ".join(str(each.shape) for each in self.arrays)
            raise DataError(f"`{argument}` must be arrays with a row a record, all of one length. Received: {shapes}.")

    def spread(self, entries: int) -> Any:
        """The records as an RDD of lists of so many arrays."""
        if self.rdd is not None:
            return spread_records(self.rdd, entries)
        self._check(entries)
        return spread_arrays(self.arrays[:entries])

    def table(self, names: Sequence[str]) -> Any:
        """The records, brought to the driver, as one Arrow table."""
        columns = self.brought(len(names))
        return pa.concat_tables([pa.table(chunk) for chunk in arrow_columns(rows_of(columns), names)])

    def brought(self, entries: int) -> list[Array]:
        """The records, brought to the driver, as one array an entry."""
        if self.rdd is None:
            self._check(entries)
            return self.arrays[:entries]
        records = self.spread(entries).collect()
        if not records:
            raise DataError("The RDD must have at least one record. Received: none.")
        return [np.stack([np.asarray(record[i]) for record in records]) for i in range(entries)]

    def _check(self, entries: int) -> None:
        if len(self.arrays) < entries:
            raise DataError(
                f"Records must have {entries} arrays, inputs and labels. Received: {len(self.arrays)}. Give `y` too."
            )


def method_of(optimizer: Any) -> OptimMethod:
    """The optim method that was given, or that a name stands for."""
    if isinstance(optimizer, OptimMethod):
        return optimizer
    if isinstance(optimizer, str) and optimizer.lower() in _METHODS:
        return _METHODS[optimizer.lower()]()
    raise JobError(one_of("optimizer", optimizer, _METHODS) + " Or give one of bigdl.optim.optimizer's methods.")


def metric_of(metric: Any) -> Any:
    """The Keras metric for one of BigDL's validation methods; a Keras metric, or its name, is taken as it is."""
    if not isinstance(metric, ValidationMethod):
        return metric
    if metric.name not in _METRICS:
        raise JobError(one_of("metrics", metric.name, _METRICS) + " Or give a metric of Keras.")
    return _METRICS[metric.name]


def columns_of(model: Any) -> Columns:
    """The entries of a record, inputs first, as columns."""
    signature = Signature.of(model)
    # An input that the program did not name goes by its layer's name once the model was read back.
    inputs = [
        replace(port, name=tensor._keras_history.operation.name)
        for port, tensor in zip(signature.inputs, model.inputs, strict=True)
    ]
    return Columns(features=_slots(inputs, "x"), labels=_slots(signature.outputs, "y"))


def rule_for(method: OptimMethod, clipping: Clipping) -> RuleSpec:
    """The rule of a method with the clipping."""
    return combined_rule(method, clip_constant=clipping.constant, clip_norm=clipping.norm)


def job_for(
    model: Any, method: OptimMethod, rule: RuleSpec, schedule: dict[str, Any], *, batch_size: int, workers: int
) -> TrainingJob:
    """The job that trains a compiled model synchronously by an optim method."""
    check_trainable(model)
    return TrainingJob(
        model=live_source(model, backend="tensorflow"),
        columns=columns_of(model),
        schedule=Schedule(**schedule, batch_total=batch_size),
        exchange=ExchangePlan("gradients", 1, "synchronous", rule),
        workers=workers,
        servers=method.servers or "workers",
    )


class KerasHooks(TrainingHooks):
    """Hooks for a model whose workers do not tell each step's loss: each epoch's mean is noted at its last step."""

    _rows = 0

    def on_ready(self, rank: int, rows: int) -> None:
        """Add up the rows of an epoch."""
        super().on_ready(rank, rows)
        self._rows += rows

    def end_lap(self, lap: Lap) -> bool:
        """Note the epoch's loss."""
        if "loss" in lap.logs:
            self.on_losses(0, lap.step - 1, np.array([lap.logs["loss"]]), np.array([float(self._rows)]))
        return super().end_lap(lap)


def _slots(ports: Sequence[Port], letter: str) -> tuple[Slot, ...]:
    several = len(ports) > 1
    return tuple(
        Slot(port.name if several else None, (f"{letter}{number}",), shape=port.shape if letter == "x" else None)
        for number, port in enumerate(ports)
    )
