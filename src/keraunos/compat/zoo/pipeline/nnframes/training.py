"""From an estimator and a DataFrame to a trained model. Runs on the driver."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, RateFollower
from keraunos.compat.zoo.bigdl.optim.triggers import MaxEpoch, TrainingState, Trigger, TriggerOr
from keraunos.compat.zoo.bigdl.optim.validation import Accuracy, Loss, Top1Accuracy, Top5Accuracy, ValidationMethod
from keraunos.compat.zoo.pipeline.api.keras import training
from keraunos.compat.zoo.pipeline.api.keras.training import Clipping, KerasHooks
from keraunos.compat.zoo.pipeline.nnframes.losses import has_classes, loss_of
from keraunos.compat.zoo.pipeline.nnframes.net_of import Shapes, cloned, copied_model, keras_model
from keraunos.compat.zoo.pipeline.nnframes.rows import RowReading, feature_shapes, train_records
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.compat.zoo.tfpark.training_hooks import Plan
from keraunos.errors import ColumnError, DataError, JobError, ModelError
from keraunos.launch import spark
from keraunos.launch.given_paths import given_path
from keraunos.launch.hooks import Hooks
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.learners.keras_variables import write_vector
from keraunos.parameters import Layout, Vector
from keraunos.session.registry import session_of

if TYPE_CHECKING:
    from keraunos.compat.zoo.pipeline.nnframes.nn_classifier import NNEstimator

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Validation:
    """When to measure what on which rows."""

    trigger: Trigger
    rows: Any
    methods: tuple[ValidationMethod, ...]
    batch_size: int


@dataclass(frozen=True)
class CheckpointSettings:
    """When and where to save the model."""

    path: str
    trigger: Trigger
    over_write: bool


@in_tensorflow_2
def train(estimator: NNEstimator, dataset: Any) -> None:
    """Train the estimator's model."""
    end = _end_of(estimator)
    shapes = functools.partial(_shapes, estimator, dataset)
    if estimator.shares_model:
        estimator.model, estimator.shares_model = cloned(estimator.model, shapes), False
    model = keras_model(estimator.model, shapes)
    # The program's model may be compiled for something else.
    work = copied_model(model)
    work.compile("sgd", loss_of(estimator.criterion))
    reading = _reading(estimator, work)
    data = _records(estimator, dataset, reading)
    method = _method_of(estimator)
    rule = training.rule_for(method, Clipping(*estimator.clipping))
    before = TrainingState()
    plan, hooks_of = _plan(estimator, work, reading, end)
    hooks = hooks_of(plan, before, {"": method}, RateFollower.of(method))
    batch_size = estimator.getBatchSize()
    job = training.job_for(
        work,
        method,
        rule,
        {**plan.schedule(before), "seed": 0},
        batch_size=batch_size,
        workers=max(1, min(int(data.getNumPartitions()), session_of(data).slots(), batch_size)),
    )
    if estimator.getDataCacheLevel() != "DRAM":
        job = replace(job, memory_budget=1)
    if estimator.samplePreprocessing.draws and not estimator.isCachingSample():
        _log.warning(
            "The random steps of the preprocessing are taken once for each row: all epochs see the same crops and "
            "colours. For other ones in each epoch put Keras's Random... layers into the model."
        )
    result = spark.fit(job, data, hooks=[hooks])
    model.set_weights(from_archive(result.archive, trusted=job.model.trusted).get_weights())


class _NNHooks(KerasHooks):
    """Hooks of a training with separate triggers for validations and checkpoints."""

    validates: Trigger | None = None
    saves: Trigger | None = None

    def _validate(self, vector: Vector) -> None:
        if self.validates is not None and self.validates.fires(self.state):
            super()._validate(vector)

    def _save(self, vector: Vector) -> None:
        if self.saves is not None and self.saves.fires(self.state):
            super()._save(vector)


def _end_of(estimator: NNEstimator) -> Trigger:
    if estimator.endWhen is not None and estimator.isSet(estimator.maxEpoch):
        raise JobError(
            f"`endWhen` and `maxEpoch` must not both be set. Received: {estimator.endWhen!r} and "
            f"{estimator.getMaxEpoch()!r}."
        )
    if estimator.validation_summary is not None and estimator.validation is None:
        raise JobError("A validation summary must come with setValidation. Received: a summary alone.")
    return estimator.endWhen or MaxEpoch(estimator.getMaxEpoch())


def _method_of(estimator: NNEstimator) -> OptimMethod:
    """Returns the optim method with the estimator's learning rate, where that was set."""
    method = copy.deepcopy(estimator.optimMethod)
    named = (("learningRate", "learningrate"), ("learningRateDecay", "learningrate_decay"))
    for param, attribute in named:
        if not estimator.isSet(estimator.getParam(param)):
            continue
        if hasattr(method, attribute):
            setattr(method, attribute, float(estimator.getOrDefault(estimator.getParam(param))))
        else:
            _log.warning("%s has no %s: what was set for `%s` has no effect.", type(method).__name__, attribute, param)
    return method


def _reading(estimator: NNEstimator, model: Any) -> RowReading:
    if len(model.outputs) != 1:
        raise ModelError(f"`model` must have one output. Received: {len(model.outputs)}.")
    classes = int(model.outputs[0].shape[-1]) if has_classes(estimator.criterion) else 0
    return RowReading(estimator.samplePreprocessing, len(model.inputs), classes=classes)


def _records(estimator: NNEstimator, dataset: Any, reading: RowReading) -> Any:
    """Returns the records of a DataFrame as an RDD."""
    chosen = _chosen(estimator, dataset)
    return chosen.rdd.mapPartitions(functools.partial(train_records, reading), preservesPartitioning=True)


def _shapes(estimator: NNEstimator, dataset: Any) -> Shapes:
    """Returns the shapes of the first row's arrays."""
    first = _chosen(estimator, dataset).first()
    if first is None:
        raise DataError("The DataFrame must have rows to be trained with. Received: none.")
    return feature_shapes(estimator.samplePreprocessing, tuple(first))


def _chosen(estimator: NNEstimator, dataset: Any) -> Any:
    """Returns the columns of features and labels."""
    names = (estimator.getFeaturesCol(), estimator.getLabelCol())
    for param, name in zip(("featuresCol", "labelCol"), names, strict=True):
        if name not in dataset.columns:
            raise ColumnError(
                f"`{param}` must name a column: {', '.join(map(repr, dataset.columns))}. Received: {name!r}."
            )
    return dataset.select(*(dataset[name] for name in names))


def _plan(estimator: NNEstimator, model: Any, reading: RowReading, end: Trigger) -> tuple[Plan, Callable[..., Hooks]]:
    validation, checkpoint = estimator.validation, estimator.checkpoint
    triggers = [each.trigger for each in (validation, checkpoint) if each is not None]
    plan = Plan(end, train_summary=estimator.train_summary, val_summary=estimator.validation_summary)
    if triggers:
        plan.checkpoint = TriggerOr(*triggers)
    if validation is not None:
        plan.validate = _validating(estimator, model, reading, validation)
    if checkpoint is not None:
        plan.save = functools.partial(_write, model, checkpoint)

    def hooks(*given: Any) -> Hooks:
        made = _NNHooks(*given)
        made.validates = None if validation is None else validation.trigger
        made.saves = None if checkpoint is None else checkpoint.trigger
        return made

    return plan, hooks


def _validating(
    estimator: NNEstimator, model: Any, reading: RowReading, validation: Validation
) -> Callable[[Vector], dict[str, float]]:
    records = _records(estimator, validation.rows, reading).collect()
    if not records:
        raise DataError("`val_df` must have rows. Received: none.")
    *features, labels = (np.stack(each) for each in zip(*records, strict=True))
    given = features[0] if len(features) == 1 else features

    def validate(vector: Vector) -> dict[str, float]:
        write_vector(model, vector)
        outputs = np.asarray(model.predict(given, batch_size=validation.batch_size, verbose=0))
        return {each.name: _measured(each, outputs, labels) for each in validation.methods}

    return validate


def _measured(method: ValidationMethod, outputs: Array, labels: Array) -> float:
    """Returns a method's result. BigDL's count classes from 1, unless they are binary, Analytics Zoo's from 0."""
    by_class = isinstance(method, (Top1Accuracy, Top5Accuracy)) and not isinstance(method, Accuracy)
    by_class = by_class or (isinstance(method, Loss) and has_classes(method.criterion))
    several = outputs.ndim > 1 and outputs.shape[-1] > 1
    return method.result(method.state(outputs, labels - 1 if by_class and several else labels))


def _write(model: Any, checkpoint: CheckpointSettings, state: TrainingState, layout: Layout, vector: Vector) -> None:
    del layout
    write_vector(model, vector)
    name = "model.keras" if checkpoint.over_write else f"model.{state.neval - 1}.keras"
    given_path(checkpoint.path).child(name).replace(to_archive(model))
