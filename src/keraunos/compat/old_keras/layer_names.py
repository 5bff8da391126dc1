"""Old names of layers' attributes: shapes and weights. Runs on the driver.

Only programs of an older Keras see them; in code of packages a layer has Keras's attributes.
"""

from __future__ import annotations

import sys
from typing import Any

import keras

from keraunos.compat.run_unchanged.shadows import is_programs
from keraunos.errors import JobError

# Weights of Keras 1, by what each may be called today.
_WEIGHTS = {"W": ("kernel", "embeddings"), "b": ("bias",)}
_GATED = (keras.layers.LSTM, keras.layers.GRU, keras.layers.ConvLSTM2D)


class _LayerAttribute:
    """An attribute of all layers that an instance's own goes before."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, kind: type | None = None) -> Any:
        if layer is None or is_programs(sys._getframe(1).f_globals) is False:
            raise AttributeError(f"'{getattr(kind, '__name__', 'Layer')}' object has no attribute {self.name!r}")
        return _shape(layer, self.name) if self.name.endswith("_shape") else _weight(layer, self.name)


def install() -> None:
    """Have layers answer to these names."""
    for name in ("input_shape", "output_shape", *_WEIGHTS):
        if name not in vars(keras.layers.Layer):
            setattr(keras.layers.Layer, name, _LayerAttribute(name))


def _shape(layer: Any, name: str) -> Any:
    try:
        tensors = getattr(layer, name.removesuffix("_shape"))
    except (AttributeError, ValueError) as error:
        raise AttributeError(
            f"The layer {layer.name!r} has no {name} yet: it is in no model that knows the shape of its input."
        ) from error
    shapes = [tuple(each.shape) for each in keras.tree.flatten(tensors)]
    return shapes[0] if len(shapes) == 1 else shapes


def _weight(layer: Any, name: str) -> Any:
    if isinstance(layer, _GATED) or (name == "W" and getattr(layer, "data_format", None) == "channels_first"):
        raise JobError(
            f"`{name}` of the layer {layer.name!r} cannot be kept on today's Keras, where its weights lie another way. "
            "Received: a program that uses it. Take them from layer.get_weights(), as they lie today."
        )
    for today in _WEIGHTS[name]:
        if getattr(layer, today, None) is not None:
            return getattr(layer, today)
    raise AttributeError(f"The layer {layer.name!r} has no {name!r}: it has no such weights, or none yet.")
