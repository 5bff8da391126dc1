"""Activations of BigDL's that are others in Keras today, or not there. Runs on the driver and on workers.

They are classes, because an archive stores the module of a class, but not of a function.
"""

from __future__ import annotations

from typing import Any

from keraunos.compat.old_keras import own_layers
from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled


class _Activation:
    """An activation without arguments."""

    def get_config(self) -> dict[str, Any]:
        """There are no arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Returns the activation."""
        return cls(**config)


@keras.saving.register_keras_serializable(PACKAGE)
class HardSigmoid(_Activation):
    """A fifth of x and a half, between 0 and 1."""

    def __call__(self, x: Any) -> Any:
        """Returns the function's value."""
        return own_layers.hard_sigmoid(x)


@keras.saving.register_keras_serializable(PACKAGE)
class SoftMin(_Activation):
    """The softmax of minus x."""

    def __call__(self, x: Any) -> Any:
        """Returns the function's value."""
        return keras.ops.softmax(-x)


@keras.saving.register_keras_serializable(PACKAGE)
class RowSoftMax(_Activation):
    """The softmax of a row of numbers, or of an image's channels, which come first: BigDL's module.

    Args:
        of_minus: whether it is that of minus x.
    """

    def __init__(self, of_minus: bool = False) -> None:
        self.of_minus = of_minus

    def __call__(self, x: Any) -> Any:
        """Returns the function's value."""
        if len(x.shape) not in {2, 4}:
            name = "SoftMin" if self.of_minus else "SoftMax"
            raise ModelError(
                f"{name} of bigdl.nn.layer takes rows of numbers, or images. Received: the shape {tuple(x.shape)}, "
                f"of which BigDL took the first dimension for channels. For the last one put TimeDistributed({name}()) "
                "there."
            )
        return keras.ops.softmax(-x if self.of_minus else x, axis=1)

    def get_config(self) -> dict[str, Any]:
        """Returns the argument."""
        return {"of_minus": self.of_minus}
