"""How a classifier's outputs become classes and probabilities. `Head.of` runs on the driver, the rest on workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.ml.keras import losses
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
        units = _checked_units(output, losses.loss_name(loss))
        return cls(units, losses.from_logits(loss))

    @classmethod
    def existing(cls, model: Any, output: Port, logits: bool | None = None) -> Head:
        """The head of a model that may not be compiled; `logits` says what else its loss or its activation does."""
        loss = losses.loss_for(model, output.name, 0) if model.compiled else None
        units = _checked_units(output, losses.loss_name(loss))
        if logits is not None:
            return cls(units, bool(logits))
        if losses.says_logits(loss):
            return cls(units, losses.from_logits(loss))
        from keraunos.learners.model_parts import output_activation

        activation = output_activation(model)
        if activation == ("sigmoid" if units == 1 else "softmax"):
            return cls(units, logits=False)
        raise ModelError(
            f"KerasClassificationModel must know whether the output {output.name!r} of {units} unit(s) holds logits or "
            "probabilities. Expected: a compiled loss that says it, or softmax, or sigmoid where there is one unit. "
            f"Received: the activation {activation!r} and no such loss. Write of(..., fromLogits=True) for logits, "
            "fromLogits=False for probabilities."
        )

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


def _checked_units(output: Port, loss: str) -> int:
    """How many units the output has; raises where they, or the loss, are not for classes."""
    units = output.shape[-1] if output.shape else 1
    if len(output.shape) > 1 or units is None:
        raise ModelError(
            f"KerasClassifier needs a model whose output is one score for each class, or one for two classes. "
            f"Received: an output of shape {(None, *output.shape)}. Use KerasEstimator for arrays of predictions."
        )
    if units == 1 and loss in losses.REGRESSION:
        raise ModelError(
            f"KerasClassifier needs a loss for classes where the model has one output unit. Expected "
            f"binary_crossentropy and a sigmoid output. Received: loss {loss!r}. Use KerasRegressor to predict "
            "numbers."
        )
    if units == 1 and loss in losses.SPARSE | losses.ONE_HOT:
        raise ModelError(
            f"The loss {loss!r} needs one output unit for each class. Received: a model with one output unit. "
            "Use binary_crossentropy, or as many units as classes."
        )
    if units > 1 and loss in losses.BINARY:
        raise ModelError(
            f"KerasClassifier predicts one class a row, and {loss} with {units} units is for rows that may have "
            "several. Use sparse_categorical_crossentropy with softmax, or KerasEstimator to get every unit."
        )
    return units


def _softmax(values: Scores) -> Scores:
    with np.errstate(invalid="ignore"):  # an infinite score less itself is NaN, which is what is then told
        powers = np.exp(values - values.max(axis=1, keepdims=True))
    scaled: Scores = powers / powers.sum(axis=1, keepdims=True)
    return scaled
