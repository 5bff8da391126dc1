"""How a classifier's outputs become classes and probabilities. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """`units` numbers come out of the model, as logits or as probabilities; one unit stands for two classes."""

    units: int
    logits: bool

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return 2 if self.units == 1 else self.units

    def scores(self, outputs: npt.NDArray[Any]) -> tuple[Scores, Scores]:
        """The raw scores and the probabilities, one column a class."""
        values = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), self.units)
        if not self.logits:
            both = np.hstack([1.0 - values, values]) if self.units == 1 else values
            return both, both
        if self.units == 1:
            raw = np.hstack([-values, values])
            return raw, _softmax(np.hstack([np.zeros_like(values), values]))
        return values, _softmax(values)

    def chosen(self, probability: Scores, thresholds: tuple[float, ...] | None = None) -> Scores:
        """The number of each row's class: the first with the largest probability, divided by its threshold if any.

        As in spark.ml, a class whose threshold is 0 is chosen unless its probability is 0, too.
        """
        scaled = probability
        if thresholds is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = probability / np.asarray(thresholds)
            scaled = np.where(np.isnan(scaled), -np.inf, scaled)
        chosen: Scores = scaled.argmax(axis=1).astype(np.float64)
        return chosen

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Head:
        """The head that `to_json` described."""
        return cls(**data)


def _softmax(values: Scores) -> Scores:
    with np.errstate(invalid="ignore"):  # an infinite score less itself is NaN, which is what is then told
        powers = np.exp(values - values.max(axis=1, keepdims=True))
    scaled: Scores = powers / powers.sum(axis=1, keepdims=True)
    return scaled
