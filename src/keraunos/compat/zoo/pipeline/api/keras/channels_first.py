"""Convolutions over images whose channels come first, on any CPU. Runs on the driver and on workers.

TensorFlow has them on GPUs, and on CPUs only where it may use oneDNN's kernels, which depends on the processor.
"""

from __future__ import annotations

from typing import Any

from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled


@keras.saving.register_keras_serializable("keraunos.zoo")
class TransposedConv2D(keras.layers.Conv2D):  # type: ignore[misc]  # Keras is untyped
    """Keras's `Conv2D` for channels first: it moves them to the end, convolves, and moves them back."""

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """The convolution of both."""
        convolved = keras.ops.conv(
            keras.ops.transpose(inputs, (0, 2, 3, 1)),
            kernel,
            strides=list(self.strides),
            padding=self.padding,
            dilation_rate=self.dilation_rate,
            data_format="channels_last",
        )
        return keras.ops.transpose(convolved, (0, 3, 1, 2))
