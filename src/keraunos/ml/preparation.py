"""From an estimator's Params and a schema to a training job. Runs on the driver, before any task.

Everything that can be wrong and that no row is needed to see is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import BooleanType, NumericType

from keraunos.errors import ColumnError, JobError, ModelError, PlanError
from keraunos.exchange.rules.registry import rule_class
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob, check_compression
from keraunos.ml import fitting
from keraunos.ml.schema import SlotSpec, find_slots, scalar_column
from keraunos.ml.signature import Signature
from keraunos.ml.training_params import TrainingParams

FirstRow = Callable[[], Mapping[str, Any] | None]
Labels = tuple[tuple[Slot, ...], tuple[SlotSpec, ...]]


@dataclass(frozen=True)
class Prepared:
    """A job, and what the model that comes out of it takes and gives."""

    job: TrainingJob
    signature: Signature
    model: Any


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
    """
    import keras

    from keraunos.learners.keras_archive import to_archive
    from keraunos.learners.keras_variables import layout_of

    exchange = exchange_of(params)
    _check_rule(exchange, params)
    check_compression(exchange, keras.config.floatx())
    model = _trainable(params)
    read = _columns(params, schema, case_sensitive=case_sensitive)
    custom = params.getCustomObjects()
    with keras.saving.custom_object_scope(custom):
        model, signature = fitting.built(model, read.columns.features, read.features, first_row)
    features = fitting.checked_inputs(read.columns.features, read.features, signature)
    if check is not None:
        check(model, signature)
    found = (read.columns.labels, read.labels)
    labels = fitting.checked_labels(model, *(found if encode is None else encode(model, signature, found)), signature)
    check_compression(exchange, layout_of(model).dtype)
    archive = to_archive(model, custom)
    job = TrainingJob(
        model=ModelSource(archive, params.getBackend() or keras.config.backend(), keras.config.floatx()),
        columns=replace(read.columns, features=features, labels=labels),
        schedule=_schedule(params),
        exchange=exchange,
        workers=params.getNumWorkers() or _beside_servers(workers, params.getServers()),
        memory_budget=params.getMemoryBudget(),
        servers=params.getServers(),
        ports=params.getServerPorts(),
        state_every=params.getStateEvery(),
        worker_patience=params.getWorkerPatience(),
        on_worker_lost=params.getOnWorkerLost(),
        stall_report_after=params.getStallReportAfter(),
        on_divergence=params.getOnDivergence(),
    )
    return Prepared(job, signature, model)


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
        rule_class(plan.rule)
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


def _beside_servers(slots: int, servers: str | int) -> int:
    return max(1, slots - servers) if isinstance(servers, int) else slots


def _trainable(params: TrainingParams) -> Any:
    from keraunos.learners.keras_archive import check_trainable
    from keraunos.learners.keras_variables import has_schedule
    from keraunos.learners.metric_states import check_mergeable

    model = params.getModel()
    if model is None:
        raise ModelError(
            f"`model` must be set before `fit`. Expected a compiled Keras model. Received: None. Write "
            f"{type(params).__name__}(model=..., ...)."
        )
    check_trainable(model)
    check_mergeable(model)
    if params.getLearningRate() is not None and has_schedule(model):
        raise JobError(
            f"`learningRate` cannot replace a schedule. Expected a model compiled with a number as learning rate. "
            f"Received: learningRate={params.getLearningRate()!r} for an optimizer whose rate is a schedule. Leave "
            "`learningRate` unset, or compile the model with a number."
        )
    return model


def _columns(params: TrainingParams, schema: Any, *, case_sensitive: bool) -> _Read:
    validation = params.getValidationIndicatorCol()
    if validation is not None and params.getValidationSplit() > 0:
        raise JobError(
            "`validationIndicatorCol` and `validationSplit` both say which rows to validate on. Expected one of them. "
            f"Received: {validation!r} and {params.getValidationSplit()!r}. Leave one unset."
        )
    pixels = params.getPixels()
    features, feature_specs = find_slots(
        schema, params.getFeaturesCol(), "featuresCol", case_sensitive=case_sensitive, pixels=pixels
    )
    labels, label_specs = find_slots(
        schema, params.getLabelCol(), "labelCol", case_sensitive=case_sensitive, pixels=pixels
    )
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
    return _Read(Columns(features, labels, weight, validation, params.getAllowNaN()), feature_specs, label_specs)


def _schedule(params: TrainingParams) -> Schedule:
    return Schedule(
        epochs=params.getEpochs(),
        batch_size=params.getBatchSize(),
        seed=params.getSeed(),
        shuffle=params.getShuffle(),
        validation_split=params.getValidationSplit(),
        learning_rate=params.getLearningRate(),
        class_weight=params.getClassWeight(),
    )
