"""What a compiled loss says about a model's outputs and labels. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
