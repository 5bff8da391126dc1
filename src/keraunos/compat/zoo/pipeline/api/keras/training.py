"""From a Keras model and records to a training job, and what is noted meanwhile. Runs on the driver.

Records are rows of arrays, or an RDD of `Sample`s or of lists of arrays, inputs first, then labels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim import methods
from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, RateFollower, combined_rule
from keraunos.compat.zoo.bigdl.optim.triggers import TrainingState
from keraunos.compat.zoo.bigdl.optim.validation import AUC, ValidationMethod
from keraunos.compat.zoo.class_labels import Classes
from keraunos.compat.zoo.sample_records import rows_of, spread_arrays, spread_records
from keraunos.compat.zoo.tfpark.training_hooks import Plan, TrainingHooks
from keraunos.data.records import arrow_columns
from keraunos.errors import DataError, JobError, one_of
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import TrainingJob
from keraunos.launch.hooks import Lap
from keraunos.learners.keras_archive import check_trainable, live_source
from keraunos.ml.keras.signature import signature_of
from keraunos.ml.signature import Port
from keraunos.session.registry import session_of

# The optimizers for Analytics Zoo's names.
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
    "BinaryAccuracy": "binary_accuracy",
    "CategoricalAccuracy": "categorical_accuracy",
    "MAE": "mae",
    "MSE": "mse",
    "SparseCategoricalAccuracy": "sparse_categorical_accuracy",
    "Top1Accuracy": "accuracy",
    "Top5Accuracy": "sparse_top_k_categorical_accuracy",
}
# The names in programs, if Keras's name differs; the loss is always measured.
_NAMES: Mapping[str, str | None] = {
    "acc": "accuracy",
    "loss": None,
    "top5acc": "sparse_top_k_categorical_accuracy",
    "top5accuracy": "sparse_top_k_categorical_accuracy",
}
# What BigDL calls a measure in a summary, and what Keras may.
TAGS: Mapping[str, Sequence[str]] = {
    "AucScore": ("AUC", "auc"),
    "Loss": ("loss",),
    "MAE": ("mae", "mean_absolute_error"),
    "MSE": ("mse", "mean_squared_error"),
    "Top1Accuracy": ("accuracy", "sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy"),
    "Top5Accuracy": ("sparse_top_k_categorical_accuracy",),
}


@dataclass(frozen=True)
class Clipping:
    """How gradients are clipped."""

    constant: tuple[float, float] | None = None
    norm: float | None = None


class Records:
    """The records for training, evaluation or prediction: arrays on the driver, or an RDD."""

    def __init__(self, x: Any, y: Any, argument: str = "x") -> None:
        self.rdd = x if hasattr(x, "mapPartitions") else None
        self.classes: Classes | None = None  # what labels must be; they are checked where they are read
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
        """Returns the records as an RDD of lists of this many arrays."""
        if self.rdd is not None:
            found = spread_records(self.rdd, entries)
            return (
                found if self.classes is None else found.mapPartitions(self.classes.checked, preservesPartitioning=True)
            )
        self._check(entries)
        return spread_arrays(self.arrays[:entries])

    def table(self, columns: Columns, held_out: Sequence[Array] | None = None) -> Any:
        """Returns the records, collected to the driver, and those that are held out as one Arrow table."""
        names = columns.names
        arrays = self.brought(len(names) - (held_out is not None))
        if held_out is not None:
            arrays = [np.concatenate([each, other]) for each, other in zip(arrays, held_out, strict=True)]
            arrays.append(np.arange(len(arrays[0])) >= len(arrays[0]) - len(held_out[0]))
        return pa.concat_tables([pa.table(chunk) for chunk in arrow_columns(rows_of(arrays), names)])

    def brought(self, entries: int) -> list[Array]:
        """Returns the records, collected to the driver, as one array per entry."""
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
        if self.classes is not None:
            self.classes.check(self.arrays[entries - 1])


def split(records: Records, share: float, given: Any, entries: int) -> tuple[Records, Records | None]:
    """Returns the records to train on and those to validate on."""
    if given is not None:
        x, y = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, None)
        return records, Records(x, y, "validation_data")
    if not share:
        return records, None
    if records.rdd is not None or not 0 < share < 1:
        raise JobError(
            "`validation_split` must be a share from 0 to 1, of arrays. Received: "
            f"{share!r}{' of an RDD' if records.rdd is not None else ''}. Give `validation_data`."
        )
    columns = records.brought(entries)
    first = int(len(columns[0]) * (1 - share))
    parts = [[each[:first] for each in columns], [each[first:] for each in columns]]
    if not all(len(part[0]) for part in parts):
        raise DataError(f"`validation_split` must leave rows on both sides. Received: {share!r} of {len(columns[0])}.")
    return Records(parts[0], None), Records(parts[1], None)


def with_held_out(rdd: Any, held_out: Sequence[Array] | None) -> Any:
    """Returns an RDD's records with a mark, and among them, in equal parts per partition, the rows to validate on."""
    if held_out is None:
        return rdd
    task = functools.partial(_marked, session_of(rdd).broadcast(list(held_out)), rdd.getNumPartitions())
    return rdd.mapPartitionsWithIndex(task, preservesPartitioning=True)


def _marked(held_out: Any, partitions: int, index: int, records: Iterable[list[Any]]) -> Iterator[list[Any]]:
    for record in records:
        yield [*record, False]
    arrays = held_out.value
    for at in range(index, len(arrays[0]), partitions):
        yield [*(each[at] for each in arrays), True]


def method_of(optimizer: Any) -> OptimMethod:
    """Returns the given optim method, or the one of a name."""
    if isinstance(optimizer, OptimMethod):
        return optimizer
    if isinstance(optimizer, str) and optimizer.lower() in _METHODS:
        return _METHODS[optimizer.lower()]()
    raise JobError(one_of("optimizer", optimizer, _METHODS) + " Or give one of bigdl.optim.optimizer's methods.")


def classes_of(model: Any, loss: Any) -> Classes | None:
    """Returns the allowed labels of a model if its loss expects classes."""
    known = getattr(loss, "classes", None)
    return known(int(model.outputs[0].shape[-1])) if known is not None and len(model.outputs) == 1 else None


def metric_of(metric: Any, model: Any) -> Any:
    """Returns the Keras metric for one of BigDL's validation methods or names; `None` if that is the loss.

    A Keras metric, or its name, is used unchanged.
    """
    if isinstance(metric, str) and metric.lower() == "auc":
        metric = AUC()
    if isinstance(metric, str):
        return _NAMES.get(metric.lower(), metric)
    if not isinstance(metric, ValidationMethod):
        return metric
    if isinstance(metric, AUC):
        return _area(metric, model)
    if metric.name not in _METRICS:
        raise JobError(one_of("metrics", metric.name, ("AUC", *_METRICS)) + " Or give a metric of Keras.")
    return _METRICS[metric.name]


def _area(metric: AUC, model: Any) -> Any:
    """Keras's metric of an area: a mean over outputs, where there are several."""
    import keras

    several = int(model.outputs[0].shape[-1] or 1) if model.built else 1
    labels = {"multi_label": True, "num_labels": several} if several > 1 else {}
    return keras.metrics.AUC(thresholds=[float(each) for each in metric.thresholds()[1:-1]], name="auc", **labels)


def columns_of(model: Any, *, validates: bool = False) -> Columns:
    """Returns the entries of a record, inputs first, as columns.

    Behind them, if some are, whether it is to validate on.
    """
    signature = signature_of(model)
    # An input that the program did not name goes by its layer's name once the model was read back.
    inputs = [
        replace(port, name=tensor._keras_history.operation.name)
        for port, tensor in zip(signature.inputs, model.inputs, strict=True)
    ]
    return Columns(
        features=_slots(inputs, "x"),
        labels=_slots(signature.outputs, "y"),
        validation="validation" if validates else None,
    )


def rule_for(method: OptimMethod, clipping: Clipping) -> RuleSpec:
    """Returns the rule of a method with the clipping."""
    return combined_rule(method, clip_constant=clipping.constant, clip_norm=clipping.norm)


def job_for(
    model: Any,
    method: OptimMethod,
    rule: RuleSpec,
    schedule: dict[str, Any],
    *,
    batch_size: int,
    workers: int,
    validates: bool = False,
) -> TrainingJob:
    """Returns the job that trains a compiled model synchronously by an optim method."""
    check_trainable(model)
    return TrainingJob(
        model=live_source(model, backend="tensorflow"),
        columns=columns_of(model, validates=validates),
        schedule=Schedule(**schedule, batch_total=batch_size),
        exchange=ExchangePlan("gradients", 1, "synchronous", rule),
        workers=workers,
        servers=method.servers or "workers",
    )


class KerasHooks(TrainingHooks):
    """Hooks for a model whose workers report measures per epoch: the mean loss is written at an epoch's last step."""

    def __init__(
        self,
        plan: Plan,
        before: TrainingState,
        rates: dict[str, OptimMethod],
        follower: RateFollower | None = None,
        *,
        validates: bool = False,
    ) -> None:
        self._rows = 0
        self._measured: dict[str, float] = {}
        if validates:
            plan.validate = lambda _: self._measured
        super().__init__(plan, before, rates, follower)

    def on_ready(self, rank: int, rows: int) -> None:
        """Add up the rows of an epoch."""
        super().on_ready(rank, rows)
        self._rows += rows

    def end_lap(self, lap: Lap) -> bool:
        """Note the epoch's loss, and what workers made of the rows to validate on."""
        if "loss" in lap.logs:
            self.on_losses(0, lap.step - 1, np.array([lap.logs["loss"]]), np.array([float(self._rows)]))
        found = {name.removeprefix("val_"): value for name, value in lap.logs.items() if name.startswith("val_")}
        # A Plateau uses the first of them as score: a metric, if there is one.
        self._measured = {name: found[name] for name in sorted(found, key=lambda name: name == "loss")}
        return super().end_lap(lap)


def _slots(ports: Sequence[Port], letter: str) -> tuple[Slot, ...]:
    several = len(ports) > 1
    return tuple(
        Slot(port.name if several else None, (f"{letter}{number}",), shape=port.shape if letter == "x" else None)
        for number, port in enumerate(ports)
    )
