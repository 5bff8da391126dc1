"""One trial of a search over functions, in one Spark task. Runs on executors; the shapes of what is sent on both sides.

The values of a trial are drawn here, when the function asks for them: which ones it asks for may depend on others. The
sampler of the task gets the results of earlier trials and its own seed, so the same search draws the same
values wherever its tasks run.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from keraunos.errors import JobError, KeraunosError
from keraunos.worker import resources

# The sampler draws at random until it knows this many trials.
STARTUP = 10


@dataclass(frozen=True)
class Outcome:
    """The result of a function: a loss, or the reason for its absence; a model; and further plain values."""

    loss: float | None
    archive: bytes = b""
    details: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""


class Objective(Protocol):
    """A function to minimize. Spark sends it to the workers.

    Its exceptions end its own trial, except for errors of Keraunos, which would occur in every trial.
    """

    def __call__(self, trial: Any, *data: Any) -> Outcome:
        """Draw values from an Optuna trial, and measure the result."""


@dataclass(frozen=True)
class Order:
    """Which trial a task is to run, and what it knows of those before it (as `trial_to_plain` returns them)."""

    number: int
    seed: int
    backend: str = ""
    floatx: str = "float32"
    history: Sequence[Mapping[str, Any]] = ()


def run_objective(objective: Objective, data: Any, order: Order, indices: Iterator[int]) -> Iterator[tuple[bytes, str]]:
    """Run the trial; `data` is a broadcast of the arguments.

    Gives the model's archive and, as JSON, the trial or the error that ended it: Spark would only try that again.
    """
    import optuna

    for _ in indices:
        # A fit may have left this process on one core, which another task's worker may have been left on too.
        resources.unpin()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        trial = trial_for(order)
        started = time.monotonic()
        try:
            _start_afresh(order)
            outcome = _outcome(objective, trial, data.value)
            told = trial_to_plain(trial, outcome.loss) | {"failure": outcome.failure, "details": outcome.details}
        except KeraunosError as error:
            yield b"", json.dumps({"final": type(error).__name__, "message": str(error)})
        else:
            yield outcome.archive, json.dumps(told | {"seconds": time.monotonic() - started}, default=repr)


def load_optuna(what: str) -> Any:
    """Returns Optuna; raises an error that says how to install it if it is missing."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise JobError(
            f"{what} needs Optuna. Received: {error}. Install it with `pip install 'keraunos[hyperparam]'`, on the "
            "executors too."
        ) from error
    return optuna


@contextmanager
def quiet_optuna() -> Iterator[Any]:
    """Optuna, which says no more than warnings meanwhile."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield optuna
    finally:
        optuna.logging.set_verbosity(before)


def known_trials(number: int, at_once: int) -> int:
    """Returns how many earlier trials the trial of this number knows, if `at_once` trials run at once.

    It knows all that ended before the last ones were started, in whatever order those end. Fewer than `STARTUP` would
    make no difference to it.
    """
    known = number - at_once + 1
    return known if known >= STARTUP else 0


def trial_for(order: Order) -> Any:
    """Returns the Optuna trial to draw values from."""
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=_seed(order), n_startup_trials=STARTUP))
    study.add_trials([trial_from_plain(each) for each in order.history])
    return study.ask()


def trial_to_plain(trial: Any, loss: float | None) -> dict[str, Any]:
    """Returns an Optuna trial as what JSON can hold."""
    from optuna.distributions import distribution_to_json

    try:
        distributions = {name: distribution_to_json(each) for name, each in trial.distributions.items()}
    except TypeError as error:
        raise JobError(
            "`suggest_categorical` must be given None, booleans, numbers or strings. Received: "
            f"{trial.distributions!r}. Draw the index of a list instead."
        ) from error
    return {
        "params": dict(trial.params),
        "distributions": distributions,
        "loss": loss,
        "attributes": dict(trial.user_attrs),
    }


def trial_from_plain(plain: Mapping[str, Any]) -> Any:
    """Returns the Optuna trial, which has ended, that `trial_to_plain` described."""
    from optuna.distributions import json_to_distribution
    from optuna.trial import TrialState, create_trial

    return create_trial(
        state=TrialState.FAIL if plain["loss"] is None else TrialState.COMPLETE,
        value=plain["loss"],
        params=dict(plain["params"]),
        distributions={name: json_to_distribution(each) for name, each in plain["distributions"].items()},
        user_attrs=dict(plain["attributes"]),
    )


def _outcome(objective: Objective, trial: Any, data: Sequence[Any]) -> Outcome:
    """Returns the result of the function; its exceptions fail only this trial."""
    import optuna

    try:
        return objective(trial, *map(_own, data))
    except KeraunosError:
        raise
    except optuna.TrialPruned:
        return Outcome(None, failure="It was pruned.")
    except Exception as error:  # noqa: BLE001 - the driver tells it, and continues with the others
        return Outcome(None, failure=_told(error))


def _seed(order: Order) -> int:
    """Returns a number that follows from the search's seed and the trial's number, and is unique."""
    return int(np.random.SeedSequence([order.seed, order.number]).generate_state(1)[0])


def _start_afresh(order: Order) -> None:
    """Leave nothing of an earlier trial in this process that could change this one."""
    from keraunos.learners.registry import import_keras_on

    keras = import_keras_on(order.backend)
    from keraunos.learners.keras_archive import without_tensorflow

    keras.utils.clear_session()
    keras.config.set_floatx(order.floatx)
    with without_tensorflow():
        keras.utils.set_random_seed(_seed(order))


def _own(value: Any) -> Any:
    """Returns a copy that a trial may change, because the process uses the broadcast for the next trial, too."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def _told(error: Exception) -> str:
    """Returns an error in a line, and where in the function it was raised."""
    inner = traceback.extract_tb(error.__traceback__)[-1]
    essence = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {essence} ({inner.filename}, line {inner.lineno}, in {inner.name})"
