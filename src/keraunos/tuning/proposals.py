"""Which values the next trial of a search tries: known beforehand, or learned from others. Runs on the driver."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.errors import JobError
from keraunos.tuning.objective_task import Order, known_trials, load_optuna, quiet_optuna, trial_for, trial_to_plain
from keraunos.tuning.space import Candidate, check_trials, check_values, name_of

SAMPLERS = ("random", "tpe")


class Proposals(ABC):
    """The sets of values that a search tries, by the trial's number. One thread uses them."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many trials there are."""

    def may_propose(self, number: int, at_once: int) -> bool:
        """Returns whether enough trials have ended for this one to start, if `at_once` trials run at once."""
        return True

    @abstractmethod
    def propose(self, number: int, at_once: int) -> Candidate:
        """Returns the values of the trial of that number."""

    @abstractmethod
    def tell(self, number: int, loss: float) -> None:
        """A trial has ended with a loss to minimize; NaN where it failed or the loss is no number."""


class Listed(Proposals):
    """Sets that are known beforehand."""

    def __init__(self, sets: Sequence[Candidate]) -> None:
        self._sets = sets

    @property
    def count(self) -> int:
        """All of them."""
        return len(self._sets)

    def propose(self, number: int, at_once: int) -> Candidate:
        """Returns the set of that number."""
        return self._sets[number]

    def tell(self, number: int, loss: float) -> None:
        """Makes no difference here."""


class Learned(Proposals):
    """Sets that Optuna's TPE sampler chooses from what earlier trials came to.

    The first ten are drawn at random. Which trials one of them knows depends on its number and on how many run at once,
    not on the order in which they end: a search with the same seed is the same search.
    """

    def __init__(self, space: Any, *, trials: int | None, seed: int) -> None:
        load_optuna("sampler='tpe'")
        check_trials(trials)
        if trials is None:
            raise JobError("`trials` must say how many sets of values to try with sampler='tpe'. Received: None.")
        if not isinstance(space, Mapping) or not space:
            raise JobError(
                "`space` must be a mapping from Params, or their names, to lists of values or distributions with "
                f"sampler='tpe'. Received: {space!r}."
            )
        for key, values in space.items():
            if hasattr(values, "draw") and not hasattr(values, "suggest"):
                raise JobError(
                    f"`space[{name_of(key)!r}]` must be a list, a Uniform or a LogUniform with sampler='tpe'; another "
                    f"distribution needs a method `suggest(trial, name)`. Received: {values!r}."
                )
            if not hasattr(values, "suggest"):
                check_values(key, values)
        self._space = space
        self._count = trials
        self._seed = seed
        self._trials: dict[int, Any] = {}
        self._ended: dict[int, dict[str, Any]] = {}

    @property
    def count(self) -> int:
        """As many as were asked for."""
        return self._count

    def examples(self) -> list[Candidate]:
        """Returns each value of a list, and the ends of each distribution, by itself."""
        found = [
            {key: value}
            for key, values in self._space.items()
            for value in getattr(values, "ends", () if hasattr(values, "suggest") else values)
        ]
        return found or [{}]

    def may_propose(self, number: int, at_once: int) -> bool:
        """Returns whether the trials that this one knows have ended."""
        return all(each in self._ended for each in range(known_trials(number, at_once)))

    def propose(self, number: int, at_once: int) -> Candidate:
        """Returns the values that the sampler chooses, given the trials that this one knows."""
        known = [self._ended[each] for each in range(known_trials(number, at_once))]
        with quiet_optuna():
            trial = self._trials[number] = trial_for(Order(number, self._seed, history=known))
            chosen = [_suggested(trial, f"{at}.{name_of(key)}", self._space[key]) for at, key in enumerate(self._space)]
        return dict(zip(self._space, chosen, strict=True))

    def tell(self, number: int, loss: float) -> None:
        """Let later trials know."""
        self._ended[number] = trial_to_plain(self._trials.pop(number), None if math.isnan(loss) else loss)


def _suggested(trial: Any, name: str, values: Any) -> Any:
    if hasattr(values, "suggest"):
        return values.suggest(trial, name)
    # By its place: the values of a list may be of any kind.
    return values[trial.suggest_categorical(name, range(len(values)))]
