"""Which values a search tries. Runs on the driver."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keraunos.errors import JobError

# From a Param, or its name, to a value.
Candidate = dict[Any, Any]


class Distribution(Protocol):
    """Values that are drawn and cannot be listed."""

    def draw(self, random: np.random.Generator) -> Any:
        """Returns one value."""


@dataclass(frozen=True)
class Uniform:
    """Numbers from `low` to `high`, all as likely; whole ones with `whole`."""

    low: float
    high: float
    whole: bool = False

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise JobError(
                f"Uniform must be given a low and a higher number. Received: {self.low!r} and {self.high!r}."
            )

    def draw(self, random: np.random.Generator) -> float | int:
        """Returns one value."""
        if self.whole:
            return int(random.integers(int(self.low), int(self.high), endpoint=True))
        return float(random.uniform(self.low, self.high))

    @property
    def ends(self) -> tuple[float | int, float | int]:
        """The lowest and the highest value."""
        return (int(self.low), int(self.high)) if self.whole else (self.low, self.high)

    def suggest(self, trial: Any, name: str) -> float | int:
        """Returns one value, chosen by an Optuna trial."""
        if self.whole:
            return int(trial.suggest_int(name, int(self.low), int(self.high)))
        return float(trial.suggest_float(name, self.low, self.high))


@dataclass(frozen=True)
class LogUniform:
    """Numbers from `low` to `high`, each order of magnitude as likely: for learning rates and the like."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise JobError(
                f"LogUniform must be given a low and a higher number above 0. Received: {self.low!r} and {self.high!r}."
            )

    def draw(self, random: np.random.Generator) -> float:
        """Returns one value."""
        return float(math.exp(random.uniform(math.log(self.low), math.log(self.high))))

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return self.low, self.high

    def suggest(self, trial: Any, name: str) -> float:
        """Returns one value, chosen by an Optuna trial."""
        return float(trial.suggest_float(name, self.low, self.high, log=True))


def candidates(space: Any, *, trials: int | None = None, seed: int = 0) -> list[Candidate]:
    """Returns the sets of values to try, by the Params or names that the space has.

    Args:
        space: a list of such sets, as Spark's ParamGridBuilder builds it; or a mapping from each Param, or its name, to
            a list of values or a distribution.
        trials: how many to draw at random; without it all are tried, which takes lists only. If there are no more
            than so many, all are tried.
        seed: of the random choice.
    """
    check_trials(trials)
    random = np.random.default_rng(seed)
    if isinstance(space, Mapping):
        return _from_mapping(space, trials, random)
    if not isinstance(space, Sequence) or isinstance(space, str) or not space:
        raise JobError(
            "`space` must be a list of param maps, as ParamGridBuilder().build() gives it, or a mapping from Params to "
            f"lists of values. Received: {space!r}."
        )
    return _some_of([dict(each) for each in space], trials, random)


def check_trials(trials: int | None) -> None:
    """Raise an error if a number of trials is none."""
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, int) or trials < 1):
        raise JobError(f"`trials` must be a whole number of at least 1. Received: {trials!r}.")


def check_values(key: Any, values: Any) -> None:
    """Raise an error if a Param is to be tried with something that has no values."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise JobError(
            f"`space[{name_of(key)!r}]` must be a list of values, or a distribution such as LogUniform(1e-4, 1e-1). "
            f"Received: {values!r}."
        )


def name_of(key: Any) -> str:
    """Returns the name of a Param, by itself or as such."""
    name = getattr(key, "name", key)
    if not isinstance(name, str):
        raise JobError(f"`space` must name Params. Received: {key!r}.")
    return name


def _from_mapping(space: Mapping[Any, Any], trials: int | None, random: np.random.Generator) -> list[Candidate]:
    drawn: dict[Any, Distribution] = {name: values for name, values in space.items() if hasattr(values, "draw")}
    listed = {name: values for name, values in space.items() if name not in drawn}
    for name, values in listed.items():
        check_values(name, values)
    if drawn and trials is None:
        raise JobError(
            f"`trials` must say how many values to draw, since {', '.join(map(name_of, drawn))} cannot be listed. "
            "Received: None."
        )
    grid = [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
    if not drawn:
        return _some_of(grid, trials, random)
    chosen = random.integers(len(grid), size=trials)
    return [
        {**grid[int(at)], **{name: distribution.draw(random) for name, distribution in drawn.items()}} for at in chosen
    ]


def _some_of(listed: list[Candidate], trials: int | None, random: np.random.Generator) -> list[Candidate]:
    if trials is None or trials >= len(listed):
        return listed
    return [listed[at] for at in sorted(random.choice(len(listed), trials, replace=False).tolist())]
