"""Hyperas's distributions, drawn from an Optuna trial. Runs on executors.

Each has hyperopt's meaning: the bounds of a `loguniform` are those of the logarithm, a `q…` is rounded to a multiple of
q. What Optuna cannot draw itself comes from a number between 0 and 1, through the inverse of the distribution: the
sampler learns where the good ones lie all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

DISTRIBUTIONS = (
    "choice",
    "lognormal",
    "loguniform",
    "normal",
    "pchoice",
    "qlognormal",
    "qloguniform",
    "qnormal",
    "quniform",
    "randint",
    "uniform",
)

# Values beyond six standard deviations are ignored.
_TAIL = 1e-9


class Draws:
    """Draws a value for each name, the same one whenever the name comes again; `values` has them all."""

    def __init__(self, trial: Any) -> None:
        self._trial = trial
        self.values: dict[str, Any] = {}

    def choice(self, name: str, options: Sequence[Any]) -> Any:
        """Returns one of the options; noted by its number where it is no plain value."""
        options = list(options)
        plain = all(each is None or isinstance(each, (bool, int, float, str)) for each in options)
        if plain and len(set(options)) == len(options):
            return self._noted(name, self._trial.suggest_categorical(name, options))
        return options[self._noted(name, self._trial.suggest_categorical(name, list(range(len(options)))))]

    def pchoice(self, name: str, options: Sequence[tuple[float, Any]]) -> Any:
        """Returns one of the options with the given probabilities; its number is recorded."""
        left = self._share(name) * math.fsum(share for share, _ in options)
        chosen = 0
        for number, (share, _) in enumerate(options):
            if share > 0:
                chosen = number
                if left < share:
                    break
                left -= share
        return options[self._noted(name, chosen)][1]

    def randint(self, name: str, low: int, high: int | None = None) -> int:
        """Returns a whole number from 0, or `low`, up to but without the last argument."""
        first, end = (0, low) if high is None else (low, high)
        return int(self._noted(name, self._trial.suggest_int(name, first, end - 1)))

    def uniform(self, name: str, low: float, high: float) -> float:
        """Returns a number from `low` to `high`."""
        return self._number(name, self._trial.suggest_float(name, low, high))

    def quniform(self, name: str, low: float, high: float, q: float) -> float:
        """Returns the same, rounded to a multiple of q."""
        return self._number(name, self._trial.suggest_float(name, low, high), q)

    def loguniform(self, name: str, low: float, high: float) -> float:
        """Returns a number from e**low to e**high, whose logarithm is uniform."""
        return self._number(name, self._trial.suggest_float(name, math.exp(low), math.exp(high), log=True))

    def qloguniform(self, name: str, low: float, high: float, q: float) -> float:
        """Returns the same, rounded to a multiple of q."""
        return self._number(name, self._trial.suggest_float(name, math.exp(low), math.exp(high), log=True), q)

    def normal(self, name: str, mu: float, sigma: float) -> float:
        """Returns a number of the normal distribution."""
        return self._number(name, self._normal(name, mu, sigma))

    def qnormal(self, name: str, mu: float, sigma: float, q: float) -> float:
        """Returns the same, rounded to a multiple of q."""
        return self._number(name, self._normal(name, mu, sigma), q)

    def lognormal(self, name: str, mu: float, sigma: float) -> float:
        """Returns a number above 0 whose logarithm is normal."""
        return self._number(name, math.exp(self._normal(name, mu, sigma)))

    def qlognormal(self, name: str, mu: float, sigma: float, q: float) -> float:
        """Returns the same, rounded to a multiple of q."""
        return self._number(name, math.exp(self._normal(name, mu, sigma)), q)

    def _share(self, name: str) -> float:
        return float(self._trial.suggest_float(name, _TAIL, 1 - _TAIL))

    def _normal(self, name: str, mu: float, sigma: float) -> float:
        return NormalDist(mu, sigma).inv_cdf(self._share(name))

    def _number(self, name: str, value: float, q: float | None = None) -> float:
        return float(self._noted(name, float(value if q is None else round(value / q) * q)))

    def _noted(self, name: str, value: Any) -> Any:
        self.values[name] = value
        return value
