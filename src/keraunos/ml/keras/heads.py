"""How a Keras classifier's outputs become classes: what its loss and its last activation say. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.errors import ModelError
from keraunos.ml.heads import Head
from keraunos.ml.keras import losses
from keraunos.ml.signature import Port


def head_of(model: Any, output: Port) -> Head:
    """The head of a compiled model with one output."""
    loss = losses.loss_for(model, output.name, 0)
    units = _checked_units(output, losses.loss_name(loss))
    return Head(units, losses.from_logits(loss))


def existing_head(model: Any, output: Port, logits: bool | None = None) -> Head:
    """The head of a model that may not be compiled; `logits` says what else its loss or its activation does."""
    loss = losses.loss_for(model, output.name, 0) if model.compiled else None
    units = _checked_units(output, losses.loss_name(loss))
    if logits is not None:
        return Head(units, bool(logits))
    if losses.says_logits(loss):
        return Head(units, losses.from_logits(loss))
    from keraunos.learners.model_parts import output_activation

    activation = output_activation(model)
    if activation == ("sigmoid" if units == 1 else "softmax"):
        return Head(units, logits=False)
    raise ModelError(
        f"KerasClassificationModel must know whether the output {output.name!r} of {units} unit(s) holds logits or "
        "probabilities. Expected: a compiled loss that says it, or softmax, or sigmoid where there is one unit. "
        f"Received: the activation {activation!r} and no such loss. Write of(..., fromLogits=True) for logits, "
        "fromLogits=False for probabilities."
    )


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
