"""From an estimator's Params and a schema to a training job. Runs on the driver, before any task.

Everything that can be wrong and that no row is needed to see is found here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.types import BooleanType, NumericType

from keraunos.errors import ColumnError, JobError, ModelError, PlanError
from keraunos.exchange.rules.registry import checked_class
from keraunos.job.columns import Columns, ColumnsArgument, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import placement_of
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob, check_compression
from keraunos.learners.framework_imports import import_keras
from keraunos.ml import fitting, strings
from keraunos.ml.continuation import model_to_train
from keraunos.ml.embeddings import with_ids
from keraunos.ml.padding import Longest, padded_slots
from keraunos.ml.schema import SlotSpec, find_slots, scalar_column
from keraunos.ml.signature import Shape, Signature
from keraunos.ml.training_params import TrainingParams
from keraunos.ml.validation_rows import INDICATOR, check_validation_schema

FirstRow = Callable[[], Mapping[str, Any] | None]
Labels = tuple[tuple[Slot, ...], tuple[SlotSpec, ...]]


@dataclass(frozen=True)
class Prepared:
    """A job, what the model that comes out of it takes and gives, and the custom code that travels with it.

    `rows` are the shape and the type of each input.
    """

    job: TrainingJob
    signature: Signature
    model: Any
    custom_objects: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[tuple[Shape, str], ...] = ()


@dataclass(frozen=True)
class _Read:
    """The columns of a job and what the schema says of them."""

    columns: Columns
    features: tuple[SlotSpec, ...]
    labels: tuple[SlotSpec, ...]


def prepare(
    params: TrainingParams,
    schema: Any,
    *,
    workers: int,
    first_row: FirstRow,
    case_sensitive: bool = False,
    check: Callable[[Any, Signature], None] | None = None,
    encode: Callable[[Any, Signature, Labels], Labels] | None = None,
    longest: Longest | None = None,
) -> Prepared:
    """The job that the Params describe, for rows of this schema.

    Args:
        params: an estimator.
        schema: the DataFrame's.
        workers: how many tasks can run at once: workers, where `numWorkers` does not say, and servers of their own.
        first_row: gives the first row as a mapping, or `None`; called only for an unbuilt model whose input has a
            length that the schema does not tell.
        case_sensitive: whether column names differ by case.
        check: what a kind of estimator asks of a model and its signature besides.
        encode: what a kind of estimator makes of the labels before they are held against the model's outputs.
        longest: gives the length of the longest array in each of some columns; needed where they are padded to it.
    """
    keras = import_keras()
    from keraunos.learners.keras_archive import write_live
    from keraunos.learners.keras_variables import layout_of

    first_row = functools.cache(first_row)
    exchange = exchange_of(params)
    _check_rule(exchange, params)
    check_compression(exchange, keras.config.floatx())
    model = _trainable(params)
    read = _padded(params, model, _columns(params, schema, case_sensitive=case_sensitive), longest)
    custom = params.getCustomObjects()
    backend, floatx = params.getBackend() or keras.config.backend(), keras.config.floatx()
    with keras.saving.custom_object_scope(custom):
        model, signature = fitting.built(
            model, read.columns.features, read.features, first_row, seed=params.getSeed(), backend=backend
        )
    signature, unchecked = with_ids(model, signature)
    signature = strings.signature_in_parts(model, signature, custom)
    features = fitting.checked_inputs(read.columns.features, read.features, signature, backend=backend, floatx=floatx)
    if check is not None:
        check(model, signature)
    found = (read.columns.labels, read.labels)
    if encode is not None and read.labels:
        found = encode(model, signature, found)
    labels = fitting.checked_labels(model, *found, signature)
    if not labels:
        fitting.check_unlabelled(model, lambda: fitting.examples_of(read.columns.features, read.features, first_row))
    if params.getClassWeight():
        _check_one_label(labels)
    check_compression(exchange, layout_of(model).dtype)
    written = write_live(model, custom)
    job = _job(
        params,
        workers,
        model=ModelSource(written.archive, backend, floatx, trusted=written.trusted),
        columns=replace(read.columns, features=features, labels=labels, unchecked_ids=unchecked),
        exchange=exchange,
    )
    rows = fitting.example_rows(read.columns.features, read.features, signature, first_row)
    return Prepared(job, signature, model, written.code, tuple(rows))


def _job(params: TrainingParams, slots: int, **made: Any) -> TrainingJob:
    """The job of what was made and of what the Params say besides; `slots` is how many tasks can run at once."""
    return TrainingJob(
        schedule=_schedule(params),
        workers=params.getNumWorkers() or placement_of(params.getServers()).workers_in(slots),
        memory_budget=params.getMemoryBudget(),
        servers=params.getServers(),
        ports=params.getServerPorts(),
        state_every=params.getStateEvery(),
        worker_patience=params.getWorkerPatience(),
        driver_patience=params.getDriverPatience(),
        on_worker_lost=params.getOnWorkerLost(),
        stall_report_after=params.getStallReportAfter(),
        on_divergence=params.getOnDivergence(),
        **made,
    )


def exchange_of(params: TrainingParams) -> ExchangePlan:
    """The plan that `exchange` and the answers in place of its own describe together."""
    exchange = params.getExchange()
    plan = exchange if isinstance(exchange, ExchangePlan) else ExchangePlan.named(exchange)
    return plan.refined(
        every=params.getEvery(),
        meet=params.getMeet(),
        rule=params.getRule(),
        scale=params.getScale(),
        compression=params.getCompression(),
    )


def _check_rule(plan: ExchangePlan, params: TrainingParams) -> None:
    """Refuse a rule that no server could make, and a learning rate that nothing would step with."""
    if plan.rule.is_optimizer:
        from keraunos.learners.keras_optimizers import optimizer_of

        optimizer_of(plan.rule)
    else:
        checked_class(plan)
    if plan.send != "gradients" or plan.applies_on_workers:
        return
    import keras

    why = f"the servers apply the gradients with rule={str(plan.rule)!r}, and the model's own optimizer takes no step"
    rate = params.getLearningRate()
    if rate is not None:
        raise PlanError(
            f"`learningRate` must be left out where {why}. Received: {rate!r}. Give the rule its own learning_rate, as "
            f"in rule='sgd(learning_rate={rate!r})'."
        )
    setters = (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau)
    names = [type(each).__name__ for each in params.getCallbacks() if isinstance(each, setters)]
    if names:
        raise PlanError(
            f"`callbacks` must not set the learning rate where {why}. Received: {names!r}. Give the rule a schedule as "
            "its learning_rate, as in rule=keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 1000))."
        )


def _trainable(params: TrainingParams) -> Any:
    from keraunos.learners.keras_archive import check_trainable
    from keraunos.learners.keras_variables import has_schedule
    from keraunos.learners.metric_states import check_mergeable
    from keraunos.learners.tensorflow_layers import check_vocabularies

    model = model_to_train(params)
    if model is None:
        raise ModelError(
            f"`model` must be set before `fit`. Expected a compiled Keras model. Received: None. Write "
            f"{type(params).__name__}(model=..., ...)."
        )
    check_trainable(model, labelled=params.getLabelCol() is not None)
    check_mergeable(model)
    check_vocabularies(model)
    fitting.check_weights(params.getLabelCol(), params.getWeightCol())
    if params.getLearningRate() is not None and has_schedule(model):
        raise JobError(
            f"`learningRate` cannot replace a schedule. Expected a model compiled with a number as learning rate. "
            f"Received: learningRate={params.getLearningRate()!r} for an optimizer whose rate is a schedule. Leave "
            "`learningRate` unset, or compile the model with a number."
        )
    return model


def _columns(params: TrainingParams, schema: Any, *, case_sensitive: bool) -> _Read:
    _check_one_validation(params)
    validation = params.getValidationIndicatorCol()
    pixels = params.getPixels()
    features, feature_specs = find_slots(
        schema, params.getFeaturesCol(), "featuresCol", case_sensitive=case_sensitive, pixels=pixels, strings=True
    )
    labels, label_specs = labels_in(schema, params.getLabelCol(), case_sensitive=case_sensitive, pixels=pixels)
    if pixels is not None and all(slot.kind != "image" for slot in (*features, *labels)):
        raise ColumnError(
            "`pixels` says how images become numbers. Expected a column of Spark's image struct in `featuresCol`. "
            f"Received: {params.getFeaturesCol()!r}. Leave `pixels` unset, or scale other columns before."
        )
    weight = params.getWeightCol()
    if weight is not None:
        what = "a column of numbers"
        weight = scalar_column(schema, weight, "weightCol", NumericType, what, case_sensitive=case_sensitive)
    if validation is not None:
        what = "a boolean column"
        validation = scalar_column(
            schema, validation, "validationIndicatorCol", BooleanType, what, case_sensitive=case_sensitive
        )
    columns = Columns(features, labels, weight, validation, params.getAllowNaN())
    apart = params.getValidationData()
    if apart is not None:
        check_validation_schema(schema, apart.schema, columns, case_sensitive=case_sensitive)
        columns = replace(columns, validation=INDICATOR)
    return _Read(columns, feature_specs, label_specs)


def _check_one_validation(params: TrainingParams) -> None:
    ways = {
        "validationIndicatorCol": params.getValidationIndicatorCol(),
        "validationSplit": params.getValidationSplit() or None,
        "validationData": params.getValidationData(),
    }
    given = {name: value for name, value in ways.items() if value is not None}
    if len(given) > 1:
        raise JobError(
            f"{' and '.join(f'`{name}`' for name in given)} both say which rows to validate on. Expected one of them. "
            f"Received: {' and '.join(map(repr, given.values()))}. Leave one unset."
        )


def labels_in(
    schema: Any, argument: ColumnsArgument | None, *, case_sensitive: bool, pixels: Mapping[str, Any] | None
) -> Labels:
    """The slots of a `labelCol`, and what is known of each; none where it is `None`."""
    if argument is None:
        return (), ()
    return find_slots(schema, argument, "labelCol", case_sensitive=case_sensitive, pixels=pixels)


def _check_one_label(labels: tuple[Slot, ...]) -> None:
    if len(labels) != 1:
        raise JobError(
            "`classWeight` needs exactly one label, whose classes it weighs. "
            f"Received: {len(labels)} labels. Use `weightCol` instead."
        )


def _padded(params: TrainingParams, model: Any, read: _Read, longest: Longest | None) -> _Read:
    """The columns with the lengths that arrays become."""
    limit = params.getMaxLength()
    if not params.getPad():
        if limit is not None:
            raise JobError(f"`maxLength` cuts arrays that are padded. Received: {limit!r} without pad=True. Set both.")
        return read
    ports = Signature.of(model).inputs if model.built and hasattr(model, "inputs") else ()
    features = padded_slots(read.columns.features, read.features, ports, limit, longest or dict.fromkeys)
    return replace(read, columns=replace(read.columns, features=features))


def _schedule(params: TrainingParams) -> Schedule:
    class_weight = params.getClassWeight()
    return Schedule(
        epochs=params.getEpochs(),
        batch_size=params.getBatchSize(),
        seed=params.getSeed(),
        shuffle=params.getShuffle(),
        validation_split=params.getValidationSplit(),
        learning_rate=params.getLearningRate(),
        class_weight=class_weight if isinstance(class_weight, dict) else {},
    )
