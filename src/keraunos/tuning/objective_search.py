"""A search over a function's values, with Optuna, as tasks of Spark. Runs on the driver.

The function trains any model and returns a loss. Optuna draws its values from the results of earlier trials.
"""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from keraunos import errors
from keraunos.errors import ClusterError, KeraunosError, WorkerError
from keraunos.launch.spark import translated
from keraunos.session.session import Session
from keraunos.tuning.objective_task import (
    Objective,
    Order,
    known_trials,
    load_optuna,
    quiet_optuna,
    run_objective,
    trial_from_plain,
    trial_to_plain,
)
from keraunos.tuning.task_pool import TaskPool, Threads, run_in_turn

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ObjectiveTrial:
    """One set of values and its result; one that failed has an `error` and infinity as its loss."""

    number: int
    params: dict[str, Any]
    loss: float
    seconds: float
    details: dict[str, Any]
    archive: bytes = b""
    error: str | None = None


@dataclass(frozen=True)
class ObjectiveResult:
    """All trials in the order in which they were started, and Optuna's own study of them."""

    trials: tuple[ObjectiveTrial, ...]
    study: Any

    def best(self, count: int) -> list[ObjectiveTrial]:
        """Returns up to this many of the successful trials, the lowest loss first."""
        return _best_of(self.trials)[:count]


def search_objective(
    session: Session,
    objective: Objective,
    data: Sequence[Any],
    *,
    trials: int,
    at_once: int,
    backend: str,
    floatx: str = "float32",
    seed: int = 0,
    keep: int | None = None,
) -> ObjectiveResult:
    """Minimize a function by trying values for it, and record the results.

    A trial knows of all trials that ended before the `at_once` last ones, whatever order those end in: a search with
    the same seed, as many trials at once, is the same search.

    Args:
        session: the session whose tasks the trials are.
        objective: called in a task with an Optuna trial, to draw values from, and the data.
        data: its other arguments; sent to the workers once.
        trials: how many to run.
        at_once: how many may run at the same time; no more than Spark has slots for do.
        backend: Keras's backend for the workers.
        floatx: Keras's default float type there.
        seed: of the values, and of all that is random within a trial.
        keep: how many models of the best trials are returned; default: all.
    """
    study = _study()
    pool = TaskPool(session)
    sent = session.broadcast(tuple(data))
    try:
        order = functools.partial(Order, seed=seed, backend=backend, floatx=floatx)
        run = functools.partial(_run, pool, objective, sent)
        return Search(run, order, study, trials, max(1, min(at_once, pool.slots)), keep).on(pool.threads)
    finally:
        sent.destroy()


class Search:
    """Starts trials, and reports their results to Optuna in the order in which they were started.

    `run` runs one and gives its result, for the user and for Optuna; `order` makes what it is called with.
    """

    def __init__(
        self,
        run: Callable[[Order], tuple[ObjectiveTrial, Any]],
        order: Callable[..., Order],
        study: Any,
        trials: int,
        at_once: int,
        keep: int | None,
    ) -> None:
        self._run = run
        self._order = order
        self._study = study
        self._trials = trials
        self._at_once = at_once
        self._keep = keep
        self._ended: dict[int, ObjectiveTrial] = {}
        self._untold: dict[int, Any] = {}

    def on(self, threads: Threads) -> ObjectiveResult:
        """Run all trials in threads, which `TaskPool.threads` returns."""
        run_in_turn(
            threads,
            self._trials,
            self._at_once,
            may_start=self._may_start,
            call=lambda number: functools.partial(self._run, self._order(number, history=self._history(number))),
            take=lambda ended: self._take(*ended),
        )
        return self._result()

    def _may_start(self, number: int) -> bool:
        return len(self._study.trials) >= known_trials(number, self._at_once)

    def _history(self, number: int) -> list[dict[str, Any]]:
        known = self._study.trials[: known_trials(number, self._at_once)]
        return [trial_to_plain(each, each.value) for each in known]

    def _take(self, trial: ObjectiveTrial, frozen: Any) -> None:
        if trial.error is None:
            logger.info("trial %d: loss %g with %s", trial.number, trial.loss, trial.params)
        else:
            logger.warning("trial %d failed: %s", trial.number, trial.error)
        self._ended[trial.number] = trial
        self._untold[trial.number] = frozen
        while (told := len(self._study.trials)) in self._untold:
            self._study.add_trial(self._untold.pop(told))
        if self._keep is not None:
            for each in _best_of(tuple(self._ended.values()))[self._keep :]:
                self._ended[each.number] = replace(each, archive=b"")

    def _result(self) -> ObjectiveResult:
        trials = tuple(self._ended[number] for number in sorted(self._ended))
        failed = [each for each in trials if each.error is not None]
        if len(failed) == len(trials):
            raise WorkerError(f"No trial of the search ended well: {len(failed)} failed. The first: {failed[0].error}")
        if failed:
            logger.warning("%d of %d trials failed. The first: %s", len(failed), len(trials), failed[0].error)
        return ObjectiveResult(trials, self._study)


def _run(pool: TaskPool, objective: Objective, data: Any, order: Order) -> tuple[ObjectiveTrial, Any]:
    """Run one trial in one task. Returns its result, for the user and for Optuna."""
    try:
        ((archive, text),) = pool.run(functools.partial(run_objective, objective, data, order), order.backend)
        told = json.loads(text)
    except (Py4JError, PySparkException) as error:
        # The task was lost with its process; a function that Spark cannot even send is another matter.
        lost = translated(error)
        if isinstance(lost, ClusterError):
            raise lost from error
        archive, told = b"", {"params": {}, "distributions": {}, "loss": None, "attributes": {}, "failure": str(lost)}
    if "final" in told:
        raise getattr(errors, told["final"], KeraunosError)(told["message"])
    loss = told["loss"]
    trial = ObjectiveTrial(
        number=order.number,
        params=told["params"],
        loss=math.inf if loss is None else loss,
        seconds=told.get("seconds", math.nan),
        details=told.get("details", {}),
        archive=archive,
        error=told["failure"] if loss is None else None,
    )
    return trial, trial_from_plain(told)


def _best_of(trials: Sequence[ObjectiveTrial]) -> list[ObjectiveTrial]:
    well = [each for each in trials if each.error is None]
    return sorted(well, key=lambda each: (each.loss, each.number))


def _study() -> Any:
    """Optuna's study of the trials, without its own log messages."""
    load_optuna("A search over a function's values")
    with quiet_optuna() as optuna:
        return optuna.create_study()
