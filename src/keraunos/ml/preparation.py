"""From an estimator's Params and a schema to a training job. Runs on the driver, before any task.

Everything that can be wrong and that no row is needed to see is found here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BooleanType, NumericType

from keraunos.errors import ColumnError, JobError, ModelError, PlanError
from keraunos.exchange.rules.registry import checked_class
from keraunos.formats.registry import format_named
from keraunos.job.columns import Columns, ColumnsArgument, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import placement_of
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob, check_compression
from keraunos.ml import fitting
from keraunos.ml.continuation import model_to_train
from keraunos.ml.live_models import FirstRow, Read
from keraunos.ml.padding import Longest, padded_slots
from keraunos.ml.schema import SlotSpec, find_slots, scalar_column
from keraunos.ml.signature import Shape, Signature
from keraunos.ml.training_params import TrainingParams
from keraunos.ml.validation_rows import INDICATOR, check_validation_schema

if TYPE_CHECKING:
    from keraunos.ml.fitter import Fitter

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
    params: Fitter,
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
    live = params.live
    its_backend, floatx = live.settings()
    exchange = exchange_of(params)
    _check_rule(exchange, params)
    check_compression(exchange, floatx)
    model = _trainable(params)
    read = _padded(params, model, _columns(params, schema, case_sensitive=case_sensitive), longest)
    custom = params.getCustomObjects()
    backend = params.getBackend() or its_backend
    given = Read(read.columns.features, read.features, functools.cache(first_row))
    settled = live.settled(model, given, seed=params.getSeed(), backend=backend, custom_objects=custom)
    model, signature = settled.model, settled.signature
    features = fitting.checked_inputs(given.slots, given.specs, signature, backend=backend, floatx=floatx)
    if check is not None:
        check(model, signature)
    found = (read.columns.labels, read.labels)
    if encode is not None and read.labels:
        found = encode(model, signature, found)
    labels = live.checked_labels(model, *found, signature)
    if not labels:
        live.check_unlabelled(model, given)
    if params.getClassWeight():
        _check_one_label(labels)
    check_compression(exchange, live.dtype(model))
    written = format_named(live.format).write(model, custom)
    job = _job(
        params,
        workers,
        model=ModelSource(written.archive, backend, floatx, live.format, written.trusted),
        columns=replace(read.columns, features=features, labels=labels, unchecked_ids=settled.unchecked_ids),
        exchange=exchange,
    )
    return Prepared(job, signature, model, written.code, settled.rows)


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


def _check_rule(plan: ExchangePlan, params: Fitter) -> None:
    """Refuse a rule that no server could make, and a learning rate that nothing would step with."""
    if plan.rule.is_optimizer:
        from keraunos.learners.keras_optimizers import optimizer_of

        optimizer_of(plan.rule)
    else:
        checked_class(plan)
    if plan.send != "gradients" or plan.applies_on_workers:
        return
    why = f"the servers apply the gradients with rule={str(plan.rule)!r}, and the model's own optimizer takes no step"
    rate = params.getLearningRate()
    if rate is not None:
        raise PlanError(
            f"`learningRate` must be left out where {why}. Received: {rate!r}. Give the rule its own learning_rate, as "
            f"in rule='sgd(learning_rate={rate!r})'."
        )
    params.live.check_rate_setters(params._given_callbacks(), why)


def _trainable(params: Fitter) -> Any:
    live = params.live
    model = model_to_train(params)
    if model is None:
        raise ModelError(
            f"`model` must be set before `fit`. Expected {live.expected}. Received: None. Write "
            f"{type(params).__name__}(model=..., ...)."
        )
    live.check_trainable(model, labelled=params.getLabelCol() is not None)
    fitting.check_weights(params.getLabelCol(), params.getWeightCol())
    if params.getLearningRate() is not None and live.has_schedule(model):
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


def _padded(params: Fitter, model: Any, read: _Read, longest: Longest | None) -> _Read:
    """The columns with the lengths that arrays become."""
    limit = params.getMaxLength()
    if not params.getPad():
        if limit is not None:
            raise JobError(f"`maxLength` cuts arrays that are padded. Received: {limit!r} without pad=True. Set both.")
        return read
    ports = params.live.known_inputs(model)
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
