"""Paddle's active types. Runs on the driver and on workers.

Where Paddle cuts off what goes into an exponential, it does so for the value alone: the gradient is that of the whole
function. `cut` does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from keraunos.errors import ModelError, one_of

ops = keras.ops

# Activations over a whole row or a whole sequence; the others are elementwise.
_OF_ROWS = frozenset({"softmax", "sequence_softmax"})


def activate(name: str, tensor: Any, mask: Any = None) -> Any:
    """Returns the tensor after the activation of that name; `mask` marks a sequence's steps."""
    if name in ("", "linear"):
        return tensor
    if name == "sequence_softmax":
        return _over_steps(tensor, mask)
    if name not in _ACTIVATIONS:
        raise ModelError(one_of("active_type", name, ("linear", "sequence_softmax", *_ACTIVATIONS)))
    return _ACTIVATIONS[name](tensor)


def takes_numbers_alone(name: str) -> bool:
    """Returns whether the activation is elementwise."""
    return name not in _OF_ROWS


def cut(tensor: Any, least: float | None = None, most: float | None = None) -> Any:
    """Returns the tensor within bounds, with the gradient of the tensor as it was."""
    within = tensor if least is None else ops.maximum(tensor, least)
    within = within if most is None else ops.minimum(within, most)
    return ops.stop_gradient(within) + (tensor - ops.stop_gradient(tensor))


def softmax(tensor: Any, axis: int = -1) -> Any:
    """Softmax whose exponents end at -64, so that no class has a probability of exactly 0."""
    highest = ops.stop_gradient(ops.max(tensor, axis=axis, keepdims=True))
    powers = ops.exp(cut(tensor - highest, least=-64.0))
    return powers / ops.sum(powers, axis=axis, keepdims=True)


def _over_steps(tensor: Any, mask: Any) -> Any:
    if mask is None:
        raise ModelError(
            "The activation 'sequence_softmax' goes over the steps of a sequence. Received: an input that is none."
        )
    present = ops.cast(mask, tensor.dtype)[..., None]
    # Steps that are not there get nothing.
    scores = ops.where(present > 0, tensor, ops.full_like(tensor, -1e30))
    return ops.softmax(scores, axis=1) * present


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": lambda tensor: ops.sigmoid(cut(tensor, -40.0, 13.0)),
    "softmax": softmax,
    "relu": ops.relu,
    "brelu": lambda tensor: ops.clip(tensor, 0.0, 24.0),
    "tanh": ops.tanh,
    "stanh": lambda tensor: 1.7159 * ops.tanh(tensor * (2.0 / 3.0)),
    "softrelu": lambda tensor: ops.log1p(ops.exp(cut(tensor, -40.0, 40.0))),
    "abs": ops.abs,
    "square": ops.square,
    "exponential": ops.exp,
    "log": ops.log,
}
