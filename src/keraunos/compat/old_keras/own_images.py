"""Layers of images whose channels come first, on TensorFlow. Runs on the driver and on workers.

TensorFlow learns through such layers on GPUs, and on CPUs of some kinds only; the Keras of old moved the channels to
the end and back by itself, as these do. Shapes and weights are those of Keras's own layers.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keraunos.compat.old_keras.own_layers import PACKAGE

_FIRST = "channels_first"


def class_of(name: str, data_format: str | None) -> Any:
    """Returns the class of a layer: one of these where channels come first and the backend has to be helped."""
    ordering = data_format or keras.config.image_data_format()
    if ordering == _FIRST and keras.config.backend() == "tensorflow" and name in _CLASSES:
        return _CLASSES[name]
    return getattr(keras.layers, name)


class _Moving:
    """Common base: each layer computes like one with the same weights whose channels come last."""

    data_format: str

    def call(self, inputs: Any) -> Any:
        """Returns the layer's output with channels first again."""
        if self.data_format != _FIRST:
            return super().call(inputs)  # type: ignore[misc]
        axes = len(inputs.shape)
        last = object.__new__(type(self))
        # A second view of the one layer: what is traced in several threads must not see it change.
        last.__dict__.update(self.__dict__)
        last.__dict__["data_format"] = "channels_last"
        moved = type(last).call(last, ops.transpose(inputs, (0, *range(2, axes), 1)))
        return ops.transpose(moved, (0, axes - 1, *range(1, axes - 1)))


@keras.saving.register_keras_serializable(PACKAGE)
class Conv2D(_Moving, keras.layers.Conv2D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `Conv2D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class Conv3D(_Moving, keras.layers.Conv3D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `Conv3D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class Conv2DTranspose(_Moving, keras.layers.Conv2DTranspose):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `Conv2DTranspose`."""


@keras.saving.register_keras_serializable(PACKAGE)
class SeparableConv2D(_Moving, keras.layers.SeparableConv2D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `SeparableConv2D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class DepthwiseConv2D(_Moving, keras.layers.DepthwiseConv2D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `DepthwiseConv2D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class MaxPooling2D(_Moving, keras.layers.MaxPooling2D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `MaxPooling2D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class MaxPooling3D(_Moving, keras.layers.MaxPooling3D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `MaxPooling3D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class AveragePooling2D(_Moving, keras.layers.AveragePooling2D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `AveragePooling2D`."""


@keras.saving.register_keras_serializable(PACKAGE)
class AveragePooling3D(_Moving, keras.layers.AveragePooling3D):  # type: ignore[misc]  # Keras is used untyped
    """Keras's `AveragePooling3D`."""


_CLASSES = {
    "Conv2D": Conv2D,
    "Conv3D": Conv3D,
    "Conv2DTranspose": Conv2DTranspose,
    "SeparableConv2D": SeparableConv2D,
    "DepthwiseConv2D": DepthwiseConv2D,
    "MaxPooling2D": MaxPooling2D,
    "MaxPooling3D": MaxPooling3D,
    "AveragePooling2D": AveragePooling2D,
    "AveragePooling3D": AveragePooling3D,
}
