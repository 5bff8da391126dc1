"""Batch normalization with BigDL's running statistics. Runs on the driver and on workers."""

from __future__ import annotations

import math
from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class RunningNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]  # Keras is untyped
    """Keras's, but for the running variance, which moves to that of a sample: n - 1 divides its squares, and not n."""

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Returns the normalized inputs."""
        if not training or not self.trainable:
            return super().call(inputs, training=training, mask=mask)
        kept = ops.convert_to_tensor(self.moving_variance) * self.momentum
        outputs = super().call(inputs, training=training, mask=mask)
        count = ops.cast(_others(inputs, self.axis), kept.dtype)
        moved = ops.convert_to_tensor(self.moving_variance) - kept
        self.moving_variance.assign(kept + moved * count / ops.maximum(count - 1, 1))
        return outputs


def _others(inputs: Any, axis: int) -> Any:
    """Returns how many numbers a channel has."""
    sizes = list(ops.shape(inputs))
    del sizes[axis]
    return math.prod(sizes)
