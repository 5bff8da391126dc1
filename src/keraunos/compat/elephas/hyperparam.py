"""Hyper-parameter search as Elephas had it: Optuna draws, and each trial is a Spark task. Runs on the driver."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import keras

from keraunos.compat.elephas.hyper_objective import ModelObjective
from keraunos.compat.elephas.hyper_templates import definition_of, drawing
from keraunos.compat.elephas.hyperas.ensemble import VOTINGS, VotingModel
from keraunos.compat.elephas.hyperopt import JOB_STATE_DONE, JOB_STATE_ERROR, STATUS_FAIL, STATUS_OK, Trials
from keraunos.errors import JobError, one_of
from keraunos.learners.keras_archive import from_archive
from keraunos.session.registry import session_of
from keraunos.tuning.objective_search import ObjectiveResult, ObjectiveTrial, search_objective
from keraunos.tuning.objective_task import load_optuna

__all__ = ["HyperParamModel", "VotingModel"]


class HyperParamModel:
    """Searches for the values with which a model function does best.

    The function is called with what `data` returns, and returns a dict with a `loss`, the lower the better, a `status`
    and the trained `model`. Its values are drawn in one of two ways:

    - **Templates in its source**, as in Hyperas: `Dense({{choice([256, 512])}})`, `Dropout({{uniform(0, 1)}})`. A value
      is drawn when the function comes to it, and is the same when it comes again within a trial.
    - **An argument `trial`**, which is an Optuna trial: `def model(X_train, Y_train, X_test, Y_test, trial)` with
      `Dropout(trial.suggest_float("dropout", 0, 1))`.

    The first ten trials draw at random, later ones learn from those before. Each is a Spark task; `data` is called
    once, on the driver. A trial that raises, or whose status is `STATUS_FAIL`, is logged and left out; the search fails
    when all do.

    Args:
        sc: a SparkContext, or a SparkSession.
        num_workers: how many trials run at once; no more do than Spark has slots for.
        seed: of the values and of all that is random within trials. The same search with as many trials at once gives
            the same results.
        custom_objects: classes and functions of your own in the models, by name.

    Attributes:
        trials: the `Trials` of the last search; `trials.best_trial["misc"]["vals"]` are the values that did best.
        study: Optuna's study of the last search, for its plots and its importances.
    """

    def __init__(
        self, sc: Any, num_workers: int = 4, *, seed: int = 0, custom_objects: Mapping[str, Any] | None = None
    ) -> None:
        self.spark_context = getattr(sc, "sparkContext", sc)
        self.num_workers = _count("num_workers", num_workers)
        self.seed = _count("seed", seed, least=0)
        self.custom_objects = dict(custom_objects or {})
        self.trials: Trials | None = None
        self.study: Any = None

    def minimize(
        self,
        model: Callable[..., Any],
        data: Callable[[], Sequence[Any]],
        max_evals: int,
        notebook_name: str | None = None,
    ) -> Any:
        """Returns the trained model with the lowest loss.

        Args:
            model: the model function.
            data: a function without arguments that returns what the model function takes, such as X_train, Y_train,
                X_test, Y_test.
            max_evals: how many trials to run in all.
            notebook_name: the notebook, without `.ipynb`, in which to read the source if Python cannot find it.
        """
        result = self._search(model, data, max_evals, notebook_name, keep=1)
        return self._model_of(result.best(1)[0])

    def compute_trials(
        self,
        model: Callable[..., Any],
        data: Callable[[], Sequence[Any]],
        max_evals: int,
        notebook_name: str | None = None,
    ) -> list[Trials]:
        """Returns all trials, in a list of one `Trials`; the arguments are those of `minimize`.

        `result["model"]` has a trial's model as the bytes of a `.keras` archive, which `load_model` reads, where the
        function returned one.
        """
        self._search(model, data, max_evals, notebook_name, keep=None, needs_model=False)
        assert self.trials is not None
        return [self.trials]

    def best_models(
        self, nb_models: int, model: Callable[..., Any], data: Callable[[], Sequence[Any]], max_evals: int
    ) -> list[Any]:
        """Returns the `nb_models` trained models with the lowest losses, or all that ended well, the lowest first."""
        result = self._search(model, data, max_evals, None, keep=_count("nb_models", nb_models))
        return [self._model_of(each) for each in result.best(nb_models)]

    def best_ensemble(
        self,
        nb_ensemble_models: int,
        model: Callable[..., Any],
        data: Callable[[], Sequence[Any]],
        max_evals: int,
        voting: str = "hard",
        weights: Sequence[float] | None = None,
    ) -> VotingModel:
        """Returns the best models, which vote.

        `voting` and `weights` (for the best model first) are those of VotingModel.
        """
        wanted = _count("nb_ensemble_models", nb_ensemble_models)
        # Report this before the trials, not after them.
        if voting not in VOTINGS:
            raise JobError(one_of("voting", voting, VOTINGS))
        if weights is not None and len(weights) != wanted:
            raise JobError(f"`weights` must have a number for each of the {wanted} models. Received: {weights!r}.")
        models = self.best_models(wanted, model, data, max_evals)
        return VotingModel(models, voting, None if weights is None else list(weights)[: len(models)])

    def load_model(self, trial: Mapping[str, Any]) -> Any:
        """Returns the trained model of one of the trials that `compute_trials` returned."""
        archive = trial["result"].get("model")
        if not archive:
            raise JobError(f"The trial must have a model. Received: trial {trial['tid']}, which kept none.")
        return from_archive(archive, self.custom_objects, trial["misc"].get("trusted", ()))

    def _model_of(self, trial: ObjectiveTrial) -> Any:
        return from_archive(trial.archive, self.custom_objects, trial.details.get("trusted", ()))

    def _search(
        self,
        model: Any,
        data: Any,
        max_evals: int,
        notebook_name: str | None,
        *,
        keep: int | None,
        needs_model: bool = True,
    ) -> ObjectiveResult:
        trials = _count("max_evals", max_evals)
        takes_trial = "trial" in _parameters_of("model", model)
        function = model if takes_trial else drawing(model, notebook_name)
        load_optuna("HyperParamModel")  # Before `data`, which may take its time.
        result = search_objective(
            session_of(self.spark_context),
            ModelObjective(function, takes_trial, needs_model, self.custom_objects),
            _arguments(model, data),
            trials=trials,
            at_once=self.num_workers,
            backend=keras.config.backend(),
            floatx=keras.config.floatx(),
            seed=self.seed,
            keep=keep,
        )
        self.trials = Trials(map(_as_hyperopt, result.trials))
        self.study = result.study
        return result


def _arguments(model: Any, data: Any) -> list[Any]:
    """Returns the results of `data`, in the order of the model function's arguments."""
    _parameters_of("data", data)
    returned = data()
    names = _taken_by(model)
    count = len(returned) if isinstance(returned, (tuple, list)) else None
    if count is None or (names is not None and count != len(names)):
        expected = "the values" if names is None else f"the {len(names)} values"
        what = type(returned).__name__ if count is None else f"{count} values"
        raise JobError(
            f"`data` must return {expected} that `model` takes, {', '.join(names or ['…'])}. Received: {what}."
        )
    written = _names_returned(data)
    if names is not None and written is not None and sorted(written) == sorted(names):
        # Hyperas runs both functions in one scope, where only names count.
        return [returned[written.index(name)] for name in names]
    return list(returned)


def _taken_by(model: Any) -> list[str] | None:
    """Returns the names of what the model function must be given as data; `None` if it takes any number."""
    parameters = _parameters_of("model", model)
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters.values()):
        return None
    return [
        name
        for name, each in parameters.items()
        if name != "trial"
        and each.default is inspect.Parameter.empty
        and each.kind in {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    ]


def _names_returned(data: Any) -> list[str] | None:
    """Returns the variables that a function returns, where its source says so."""
    if not isinstance(data, FunctionType):
        return None
    try:
        definition = definition_of(data)
    except JobError:
        return None
    last = definition.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, (ast.Tuple, ast.List)):
        return None
    return [each.id if isinstance(each, ast.Name) else "" for each in last.value.elts]


def _parameters_of(argument: str, function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise JobError(f"`{argument}` must be a function. Received: {function!r}.") from error


def _as_hyperopt(trial: ObjectiveTrial) -> dict[str, Any]:
    result: dict[str, Any] = {
        **trial.details.get("result", {}),
        "loss": trial.loss,
        "status": STATUS_OK if trial.error is None else STATUS_FAIL,
    }
    if trial.archive:
        result["model"] = trial.archive
    misc: dict[str, Any] = {
        "tid": trial.number,
        "vals": {name: [value] for name, value in trial.details.get("values", trial.params).items()},
    }
    if trial.archive:
        misc["trusted"] = trial.details.get("trusted", [])
    if trial.error is not None:
        misc["error"] = trial.error
    state = JOB_STATE_DONE if trial.error is None else JOB_STATE_ERROR
    return {"tid": trial.number, "state": state, "result": result, "misc": misc}


def _count(argument: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise JobError(f"`{argument}` must be a whole number of at least {least}. Received: {value!r}.")
    return value
