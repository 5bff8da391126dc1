"""How a classifier's outputs become classes and probabilities. `Head.of` runs on the driver, the rest on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.ml import losses
from keraunos.ml.signature import Port

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

    @classmethod
    def of(cls, model: Any, output: Port) -> Head:
        """The head of a compiled model with one output."""
        loss = losses.loss_for(model, output.name, 0)
        name = losses.loss_name(loss)
        units = output.shape[-1] if output.shape else 1
        if len(output.shape) > 1 or units is None:
            raise ModelError(
                f"KerasClassifier needs a model whose output is one score for each class, or one for two classes. "
                f"Received: an output of shape {(None, *output.shape)}. Use KerasEstimator for arrays of predictions."
            )
        if units == 1 and name in losses.REGRESSION:
            raise ModelError(
                f"KerasClassifier needs a loss for classes where the model has one output unit. Expected "
                f"binary_crossentropy and a sigmoid output. Received: loss {name!r}. Use KerasRegressor to predict "
                "numbers."
            )
        if units == 1 and name in losses.SPARSE | losses.ONE_HOT:
            raise ModelError(
                f"The loss {name!r} needs one output unit for each class. Received: a model with one output unit. "
                "Use binary_crossentropy, or as many units as classes."
            )
        if units > 1 and name in losses.BINARY:
            raise ModelError(
                f"KerasClassifier predicts one class a row, and {name} with {units} units is for rows that may have "
                "several. Use sparse_categorical_crossentropy with softmax, or KerasEstimator to get every unit."
            )
        return cls(units, losses.from_logits(loss))

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

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Head:
        """The head that `to_json` described."""
        return cls(**data)


def _softmax(values: Scores) -> Scores:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    scaled: Scores = powers / powers.sum(axis=1, keepdims=True)
    return scaled
