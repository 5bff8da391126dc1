"""Weights that a layer was given as it was made, and how they lie today. Runs on the driver.

Keras 0 and 1 had a matrix for each gate of a recurrent layer, a fourth axis in `Convolution1D`, and the filters of
images first where channels came first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keraunos.errors import JobError

# The gates in the order of old; behind it their places today.
_GATES = {"LSTM": (4, (0, 2, 1, 3)), "GRU": (3, (0, 1, 2))}
_WITH_AXIS = 4  # axes of a kernel of Convolution1D


def with_weights(layer: Any, weights: Any, laid_out: Callable[[list[Any]], list[Any]] = list) -> Any:
    """Returns the layer, which has these weights as soon as it has any."""
    if weights is None:
        return layer
    if not isinstance(weights, (list, tuple)):
        raise JobError(f"`weights` must be a list of arrays. Received: a {type(weights).__name__}. Write [weights].")
    found = [np.asarray(each) for each in laid_out(list(weights))]
    if layer.built:
        layer.set_weights(found)
        return layer
    build = layer.build

    # Keras inspects the names of the arguments of `build`.
    @functools.wraps(build)
    def build_with_weights(*shapes: Any, **named: Any) -> None:
        build(*shapes, **named)
        _check(layer, found)
        layer.set_weights(found)

    layer.build = build_with_weights
    return layer


def laid_out(name: str, channels_first: bool) -> Callable[[list[Any]], list[Any]]:
    """Returns the function that converts a layer's weights from Keras 0 and 1 to today's layout."""
    return functools.partial(_laid_out, name, channels_first)


def _laid_out(name: str, channels_first: bool, weights: list[Any]) -> list[Any]:
    if name in _GATES and len(weights) == 3 * _GATES[name][0]:
        count, order = _GATES[name]
        parts: Sequence[list[Any]] = [weights[3 * gate : 3 * gate + 3] for gate in range(count)]
        return [np.concatenate([np.asarray(parts[gate][part]) for gate in order], axis=-1) for part in range(3)]
    if not weights:
        return weights
    kernel = np.asarray(weights[0])
    if name in {"Convolution1D", "AtrousConvolution1D"} and kernel.ndim == _WITH_AXIS:
        if kernel.shape[1] != 1:
            raise JobError(
                f"`weights` of {name} must begin with a kernel of the shape (filter_length, 1, inputs, nb_filter), as "
                f"from Keras 1.1 on. Received: {kernel.shape}. Give them in that order of axes."
            )
        return [kernel[:, 0], *weights[1:]]
    if channels_first and kernel.ndim >= _WITH_AXIS:
        raise JobError(
            f"`weights` of {name} must be left out if channels come first: whether a kernel is turned around "
            "depends on the backend that it was trained with, Theano or TensorFlow, and nothing tells which. Received: "
            f"a kernel of the shape {kernel.shape}. Call set_weights on the layer with a kernel that has its filters "
            "last, as (rows, columns, channels, filters); turn rows and columns around if it is Theano's."
        )
    return weights


def _check(layer: Any, weights: Sequence[Any]) -> None:
    expected = [tuple(each.shape) for each in layer.weights]
    received = [np.shape(each) for each in weights]
    if received == expected:
        return
    raise JobError(
        f"`weights` of the layer {layer.name!r} must have the shapes {expected}. Received: {received}. Give arrays of "
        "these shapes, in this order."
    )
