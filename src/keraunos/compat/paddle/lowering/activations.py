"""Paddle's active types. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from keraunos.errors import ModelError, one_of

ops = keras.ops


def activate(name: str, tensor: Any, mask: Any = None) -> Any:
    """The tensor behind the activation of that name; `mask` tells a sequence's steps."""
    if name in ("", "linear"):
        return tensor
    if name == "sequence_softmax":
        return _over_steps(tensor, mask)
    if name not in _ACTIVATIONS:
        raise ModelError(one_of("active_type", name, ("linear", "sequence_softmax", *_ACTIVATIONS)))
    return _ACTIVATIONS[name](tensor)


def _over_steps(tensor: Any, mask: Any) -> Any:
    if mask is None:
        raise ModelError(
            "The activation 'sequence_softmax' goes over the steps of a sequence. Received: an input that is none."
        )
    present = ops.cast(mask, tensor.dtype)[..., None]
    # Steps that are not there get nothing.
    scores = ops.where(present > 0, tensor, ops.full_like(tensor, -1e30))
    return ops.softmax(scores, axis=1) * present


def _sigmoid(tensor: Any) -> Any:
    return ops.sigmoid(ops.clip(tensor, -40.0, 13.0))


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": _sigmoid,
    "softmax": lambda tensor: ops.softmax(tensor, axis=-1),
    "relu": ops.relu,
    "brelu": lambda tensor: ops.clip(tensor, 0.0, 24.0),
    "tanh": ops.tanh,
    "stanh": lambda tensor: 1.7159 * ops.tanh(tensor * (2.0 / 3.0)),
    "softrelu": lambda tensor: ops.log1p(ops.exp(ops.clip(tensor, -40.0, 40.0))),
    "abs": ops.abs,
    "square": ops.square,
    "exponential": ops.exp,
    "log": ops.log,
}
