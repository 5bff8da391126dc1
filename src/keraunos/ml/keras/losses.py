"""What a compiled loss says about a model's outputs and labels. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.errors import ModelError

SPARSE = frozenset({"sparse_categorical_crossentropy"})
ONE_HOT = frozenset(
    {
        "categorical_crossentropy",
        "categorical_focal_crossentropy",
        "categorical_generalized_cross_entropy",
        "categorical_hinge",
    }
)
BINARY = frozenset({"binary_crossentropy", "binary_focal_crossentropy"})
REGRESSION = frozenset(
    {
        "mean_squared_error",
        "mean_absolute_error",
        "mean_absolute_percentage_error",
        "mean_squared_logarithmic_error",
        "huber",
        "log_cosh",
        "poisson",
        "hinge",
        "squared_hinge",
        "cosine_similarity",
        "kl_divergence",
    }
)


def loss_for(model: Any, output: str, position: int) -> Any:
    """The loss that the model was compiled with for one output; `None` where it has none."""
    loss = model.loss
    if isinstance(loss, Mapping):
        return loss.get(output)
    if isinstance(loss, list | tuple):
        return loss[position] if position < len(loss) else None
    return loss


def labelled_outputs(model: Any, outputs: Sequence[str]) -> list[str]:
    """The outputs that a compiled loss or metric compares with labels; all where the model has a loss of its own."""
    from keraunos.learners.keras_archive import output_structure
    from keraunos.learners.loss_parts import given_metrics

    loss = model.loss
    if loss is None:
        return list(outputs)
    if isinstance(loss, Mapping) and set(loss) < set(outputs) and not isinstance(output_structure(model), Mapping):
        raise ModelError(
            f"The model {model.name!r} must be compiled with an entry in `loss` for each output, which may be None. "
            f"Expected: {', '.join(map(repr, outputs))}. Received: {', '.join(map(repr, loss))}. Add the others with "
            "None, or let the model return a dict of its outputs."
        )
    measured = [_for_output(metrics, outputs) for metrics in given_metrics(model)]
    return [
        name
        for position, name in enumerate(outputs)
        if loss_for(model, name, position) is not None or any(name in names for names in measured)
    ]


def _for_output(metrics: Any, outputs: Sequence[str]) -> set[str]:
    """The outputs that a `metrics=` argument has some for."""
    if isinstance(metrics, Mapping):
        return {str(name) for name, each in metrics.items() if each}
    if isinstance(metrics, list | tuple) and len(outputs) > 1 and len(metrics) == len(outputs):
        return {name for name, each in zip(outputs, metrics, strict=True) if each}
    return set(outputs) if metrics else set()


def loss_name(loss: Any) -> str:
    """Keras's own name of a loss, such as `mean_squared_error` for 'mse'; a custom one's name as it is."""
    import keras

    if loss is None:
        return ""
    if isinstance(loss, str):
        try:
            loss = keras.losses.get(loss)
        except ValueError:
            return str(loss)
    function = getattr(loss, "fn", loss)  # Keras's own loss classes wrap a function of the canonical name
    return str(getattr(function, "__name__", None) or getattr(loss, "name", None) or type(loss).__name__)


def from_logits(loss: Any) -> bool:
    """Whether the loss takes logits, so that the model's output is not yet a probability."""
    return bool(getattr(loss, "from_logits", False))


def says_logits(loss: Any) -> bool:
    """Whether the loss tells logits from probabilities at all."""
    return loss_name(loss) in SPARSE | ONE_HOT | BINARY and (isinstance(loss, str) or hasattr(loss, "from_logits"))
