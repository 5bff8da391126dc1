"""Hyper-parameter search: many fits, of which the best model is returned. Runs on the driver.

If all rows fit a worker, a trial is one Spark task that trains on all of them, and as many trials run at once as
Spark has slots. Otherwise each trial is a distributed fit, one after the other. The values of the trials are known
beforehand, or follow from the results of earlier trials.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.ml import Pipeline
from pyspark.sql import DataFrame

from keraunos.errors import JobError, WorkerError, one_of
from keraunos.launch import spark as launch
from keraunos.launch.kept_rows import kept
from keraunos.launch.training_result import TrainingResult
from keraunos.ml.fit_plan import FitPlan
from keraunos.session.registry import session_of
from keraunos.tuning.proposals import SAMPLERS, Learned, Listed, Proposals
from keraunos.tuning.space import Candidate, candidates, name_of
from keraunos.tuning.task_pool import run_in_turn
from keraunos.tuning.trials import TaskTrials, bytes_of

logger = logging.getLogger(__name__)

MODES = ("auto", "tasks", "distributed")
# Rows that take no more than this as Arrow fit a worker: they are sent whole to each.
FITS_A_WORKER = 256 << 20


@dataclass(frozen=True)
class Trial:
    """One set of values and its result; one that failed has an `error` and NaN as its metric."""

    number: int
    params: Candidate
    metric: float
    seconds: float
    error: str | None = None


@dataclass(frozen=True)
class SearchResult:
    """All trials in the order in which they were made, the best of them, and its model."""

    trials: tuple[Trial, ...]
    best: Trial
    best_model: Any
    metric: str
    mode: str

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame with a row for each trial."""
        import pandas as pd

        rows = [
            {**each.params, self.metric: each.metric, "seconds": each.seconds, "error": each.error}
            for each in self.trials
        ]
        return pd.DataFrame(rows)


def search(
    estimator: Any,
    space: Any,
    data: Any,
    *,
    evaluator: Any = None,
    validation: Any = 0.2,
    trials: int | None = None,
    seed: int = 0,
    sampler: str = "random",
    mode: str = "auto",
    max_bytes: int = FITS_A_WORKER,
    on_trial: Callable[[Trial], Any] | None = None,
) -> SearchResult:
    """Fit an estimator with many sets of Params, and keep the model that does best on rows it was not trained on.

    Args:
        estimator: a spark.ml Estimator, a Pipeline among them; those of Keraunos can also be searched without an
            evaluator and as tasks.
        space: a list of param maps, as ParamGridBuilder().build() gives it; or a mapping from each Param, or its name,
            to a list of values or a distribution (`keraunos.tuning.space`). A name may be one of a Pipeline's stages'.
        data: the DataFrame to train on.
        evaluator: a spark.ml Evaluator for the validation rows; without one, the model's own loss on them counts.
        validation: the rows to validate on: a fraction of `data`, or, with an evaluator, another DataFrame.
        trials: how many sets to draw from the space; without it all are tried.
        seed: of the random choices.
        sampler: "random" draws all sets beforehand; "tpe" lets Optuna choose each one from what earlier trials came to
            (the extra `hyperparam`), after ten that are drawn at random.
        mode: "tasks" for one trial per task, each on all rows; "distributed" for one distributed fit after the other;
            "auto" for tasks while the rows take no more than `max_bytes` as Arrow.
        max_bytes: how many bytes of rows fit a worker.
        on_trial: called with each trial as it ends.
    """
    if mode not in MODES:
        raise JobError(one_of("mode", mode, MODES))
    if sampler not in SAMPLERS:
        raise JobError(one_of("sampler", sampler, SAMPLERS))
    _check(estimator, evaluator, validation, mode)
    proposals, first = _proposals(estimator, space, trials, seed, sampler)
    with _split(data, validation, evaluator, seed) as (train, held_out):
        measure = _Measure(evaluator, held_out, validation)
        keeper = _Keeper(measure, on_trial)
        run = _Runs(estimator, proposals, train, measure, keeper)
        if _as_tasks(mode, first, train, max_bytes):
            run.as_tasks()
            return keeper.result("tasks")
        run.one_by_one()
        return keeper.result("distributed")


@dataclass(frozen=True)
class _Variant:
    """An estimator with one set of values."""

    number: int
    params: Candidate
    estimator: Any


class _Measure:
    """How a trial is judged: by an evaluator on rows that the search held out, or by the loss on rows of the fit."""

    def __init__(self, evaluator: Any, held_out: Any, validation: Any) -> None:
        self._evaluator = evaluator
        self._held_out = held_out
        self._validation = validation
        self.larger_is_better = evaluator is not None and bool(evaluator.isLargerBetter())
        self.name = "val_loss" if evaluator is None else str(_metric_name(evaluator))

    @property
    def needs_plan(self) -> bool:
        """Whether the fit itself has to hold rows out."""
        return self._evaluator is None

    def prepared(self, plan: FitPlan) -> FitPlan:
        """Returns the plan, with rows held out where it is the fit that has to."""
        job = plan.job
        if not self.needs_plan or job.schedule.validation_split or job.columns.validation is not None:
            return plan
        return replace(plan, job=replace(job, schedule=replace(job.schedule, validation_split=self._validation)))

    def of(self, model: Any, result: TrainingResult | None) -> float:
        """Returns the metric of a model."""
        if self._evaluator is not None:
            return float(self._evaluator.evaluate(model.transform(self._held_out)))
        assert result is not None
        return float(result.history.get("val_loss", [math.nan])[-1])

    def is_better(self, one: float, other: float) -> bool:
        """Returns whether one metric beats another; what is no number beats nothing."""
        if math.isnan(one) or math.isnan(other):
            return not math.isnan(one)
        return one > other if self.larger_is_better else one < other


class _Keeper:
    """All trials, and of the models only the best so far. Any thread may offer one."""

    def __init__(self, measure: _Measure, on_trial: Callable[[Trial], Any] | None) -> None:
        self._measure = measure
        self._on_trial = on_trial
        self._lock = threading.Lock()
        self._trials: list[Trial] = []
        self._best: tuple[Trial, Any] | None = None

    def offer(self, trial: Trial, model: Any) -> None:
        """A trial has ended."""
        with self._lock:
            self._trials.append(trial)
            best = self._best
            if trial.error is None and (best is None or self._measure.is_better(trial.metric, best[0].metric)):
                self._best = (trial, model)
            logger.info("trial %d: %s %g%s", trial.number, self._measure.name, trial.metric, trial.error or "")
            if self._on_trial is not None:
                self._on_trial(trial)

    def result(self, mode: str) -> SearchResult:
        """Returns all of it, in the order in which trials were made."""
        trials = tuple(sorted(self._trials, key=lambda each: each.number))
        if self._best is None:
            raise WorkerError(f"No trial of the search ended well. The first: {trials[0].error}")
        best, model = self._best
        return SearchResult(trials, best, model, self._measure.name, mode)


class _Runs:
    """Takes proposals, trains an estimator with each, and reports the results to the next ones."""

    def __init__(self, estimator: Any, proposals: Proposals, train: Any, measure: _Measure, keeper: _Keeper) -> None:
        self._estimator = estimator
        self._proposals = proposals
        self._train = train
        self._measure = measure
        self._keeper = keeper

    def as_tasks(self) -> None:
        """A trial a task, as many at once as there are slots."""
        planning = threading.Lock()

        def run(variant: _Variant) -> Trial:
            with planning:
                plan = self._measure.prepared(variant.estimator.plan_fit(self._train, workers=1))
                rows = trials.send(plan)
            return self._judged(variant, lambda: _finished(plan, trials.train(plan, rows)))

        with closing(TaskTrials(session_of(self._train))) as trials:
            at_once = min(trials.slots, self._proposals.count)
            run_in_turn(
                trials.threads,
                self._proposals.count,
                at_once,
                may_start=lambda number: self._proposals.may_propose(number, at_once),
                call=lambda number: functools.partial(run, self._variant(number, at_once)),
                take=self._tell,
            )

    def one_by_one(self) -> None:
        """One distributed fit after the other."""
        for number in range(self._proposals.count):
            variant = self._variant(number, 1)
            train = functools.partial(_distributed, variant.estimator, self._train, self._measure)
            self._tell(self._judged(variant, train))

    def _variant(self, number: int, at_once: int) -> _Variant:
        params = self._proposals.propose(number, at_once)
        return _Variant(number, params, _with(self._estimator, params))

    def _judged(self, variant: _Variant, train: Callable[[], tuple[Any, TrainingResult | None]]) -> Trial:
        """Train a variant and measure it; a worker that fails ends its own trial only."""
        params = {name_of(key): value for key, value in variant.params.items()}
        started = time.monotonic()
        try:
            model, result = train()
        except WorkerError as error:
            trial = Trial(variant.number, params, math.nan, time.monotonic() - started, str(error))
            self._keeper.offer(trial, None)
            return trial
        metric = self._measure.of(model, result)
        trial = Trial(variant.number, params, metric, time.monotonic() - started)
        self._keeper.offer(trial, model)
        return trial

    def _tell(self, trial: Trial) -> None:
        self._proposals.tell(trial.number, -trial.metric if self._measure.larger_is_better else trial.metric)


def _distributed(estimator: Any, train: Any, measure: _Measure) -> tuple[Any, TrainingResult | None]:
    if not measure.needs_plan:
        return estimator.fit(train), None
    plan = measure.prepared(estimator.plan_fit(train))
    result = launch.fit(
        plan.job,
        plan.rows,
        custom_objects=plan.custom_objects,
        callbacks=plan.callbacks,
        listeners=plan.listeners,
        verbose=0,
    )
    return _finished(plan, result)


def _finished(plan: FitPlan, result: TrainingResult) -> tuple[Any, TrainingResult]:
    return plan.finish(result), result


def _proposals(estimator: Any, space: Any, trials: int | None, seed: int, sampler: str) -> tuple[Proposals, Any]:
    """Returns the proposals, and the estimator of one of the trials; raises an error for an invalid value."""
    if sampler == "tpe":
        learned = Learned(space, trials=trials, seed=seed)
        return learned, next(iter([_with(estimator, each) for each in learned.examples()]))
    sets = candidates(space, trials=trials, seed=seed)
    return Listed(sets), next(iter([_with(estimator, each) for each in sets]))


def _with(estimator: Any, values: Candidate) -> Any:
    """Returns a copy of the estimator with these values."""
    return estimator.copy({_param(estimator, key) if isinstance(key, str) else key: values[key] for key in values})


def _param(estimator: Any, name: str) -> Any:
    """Returns the Param of that name, of the estimator or of one of the stages that it has."""
    owners = [estimator, *(estimator.getStages() if isinstance(estimator, Pipeline) else ())]
    named = [owner.getParam(name) for owner in owners if owner.hasParam(name)]
    if not named:
        raise JobError(one_of("space", name, [param.name for owner in owners for param in owner.params]))
    if len(named) > 1:
        raise JobError(
            f"`space` must name one Param, and {len(named)} stages of the pipeline have one of this name. Received: "
            f"{name!r}. Give the Param itself, as in {{stage.{name}: …}}."
        )
    return named[0]


def _check(estimator: Any, evaluator: Any, validation: Any, mode: str) -> None:
    plannable = hasattr(estimator, "plan_fit")
    if evaluator is None and not plannable:
        raise JobError(
            "`evaluator` must be given for an estimator that cannot say its loss. Received: None, for "
            f"{type(estimator).__name__}. Give one of pyspark.ml.evaluation."
        )
    directory = estimator.getCheckpointDir() if hasattr(estimator, "getCheckpointDir") else None
    if directory is not None:
        raise JobError(
            "`checkpointDir` must be left out in a search: it holds one training, and a search is many. Received: "
            f"{directory!r}. Use estimator.clear(estimator.checkpointDir)."
        )
    if mode == "tasks" and not plannable:
        raise JobError(
            "mode='tasks' needs an estimator of Keraunos, which can be trained within one task. Received: "
            f"{type(estimator).__name__}. Prepare the features first and search over the last stage alone, or use "
            "mode='distributed'."
        )
    is_fraction = isinstance(validation, float) and 0 < validation < 1
    if not is_fraction and (evaluator is None or not isinstance(validation, DataFrame)):
        raise JobError(
            "`validation` must be a fraction of the rows, such as 0.2, or, with an `evaluator`, a DataFrame. Received: "
            f"{validation!r}."
        )


@contextmanager
def _split(data: Any, validation: Any, evaluator: Any, seed: int) -> Iterator[tuple[Any, Any]]:
    """The rows to train on, and those that an evaluator measures on."""
    if evaluator is None:
        yield data, None
        return
    train, held_out = (
        data.randomSplit([1 - validation, validation], seed=seed)
        if isinstance(validation, float)
        else (data, validation)
    )
    # Every trial is measured on them.
    with kept(held_out):
        yield train, held_out


def _as_tasks(mode: str, estimator: Any, train: Any, max_bytes: int) -> bool:
    if mode != "auto" or not hasattr(estimator, "plan_fit"):
        return mode == "tasks"
    plan = estimator.plan_fit(train, workers=1)
    return not plan.callbacks and not plan.listeners and bytes_of(plan.rows, plan.job) <= max_bytes


def _metric_name(evaluator: Any) -> str:
    return str(evaluator.getMetricName()) if hasattr(evaluator, "getMetricName") else "metric"
