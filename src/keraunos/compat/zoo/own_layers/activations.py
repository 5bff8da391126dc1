"""Activations of BigDL's that are others in Keras today, or not there. Runs on the driver and on workers.

They are classes, because an archive says in which module a class is, but not where a function is.
"""

from __future__ import annotations

from typing import Any

from keraunos.compat.old_keras import own_layers
from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
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
        """The activation."""
        return cls(**config)


@keras.saving.register_keras_serializable(PACKAGE)
class HardSigmoid(_Activation):
    """A fifth of x and a half, between 0 and 1."""

    def __call__(self, x: Any) -> Any:
        """The function's value."""
        return own_layers.hard_sigmoid(x)


@keras.saving.register_keras_serializable(PACKAGE)
class SoftMin(_Activation):
    """The softmax of minus x."""

    def __call__(self, x: Any) -> Any:
        """The function's value."""
        return keras.ops.softmax(-x)
