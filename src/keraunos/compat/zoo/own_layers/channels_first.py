"""Convolutions over images whose channels come first, on any CPU. Runs on the driver and on workers.

TensorFlow has them on GPUs, and on CPUs only if it may use oneDNN's kernels, which depends on the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
from keras import ops  # noqa: E402 - the same

PACKAGE = "keraunos.zoo"

_LAST, _FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@keras.saving.register_keras_serializable(PACKAGE)
class TransposedConv2D(keras.layers.Conv2D):  # type: ignore[misc]  # Keras is untyped
    """Keras's `Conv2D` for channels first: it moves them to the end, convolves, and moves them back."""

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """Returns the convolution of both."""
        first = self.data_format == "channels_first"
        convolved = ops.conv(
            ops.transpose(inputs, _LAST) if first else inputs,
            kernel,
            strides=list(self.strides),
            padding=self.padding,
            dilation_rate=self.dilation_rate,
            data_format="channels_last",
        )
        return ops.transpose(convolved, _FIRST) if first else convolved


@keras.saving.register_keras_serializable(PACKAGE)
class PaddedConv2D(TransposedConv2D):
    """A convolution of an image with this many rows and columns of zeros around it.

    Args:
        pads: rows above and below, columns to the left and to the right.
        propagate_back: whether the layers before learn through this one.
        named: the arguments of a `Conv2D`; its padding is "valid".
    """

    def __init__(self, *given: Any, pads: Sequence[int] = (0, 0), propagate_back: bool = True, **named: Any) -> None:
        super().__init__(*given, **named)
        self.pads = (int(pads[0]), int(pads[1]))
        self.propagate_back = propagate_back

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """Returns the convolution of the padded image."""
        inputs = inputs if self.propagate_back else ops.stop_gradient(inputs)
        around = [(pad, pad) for pad in self.pads]
        first = self.data_format == "channels_first"
        padded = ops.pad(inputs, [(0, 0), (0, 0), *around] if first else [(0, 0), *around, (0, 0)])
        return super().convolution_op(padded, kernel)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the convolution of the padded image."""
        rows = 2 if self.data_format == "channels_first" else 1
        padded = list(input_shape)
        for place, pad in zip((rows, rows + 1), self.pads, strict=True):
            padded[place] = None if padded[place] is None else padded[place] + 2 * pad
        return super().compute_output_shape(tuple(padded))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), "pads": self.pads, "propagate_back": self.propagate_back}


@keras.saving.register_keras_serializable(PACKAGE)
class TransposedDeconvolution2D(keras.layers.Conv2DTranspose):  # type: ignore[misc]  # Keras is untyped
    """Keras's `Conv2DTranspose` for channels first or last.

    Args:
        expected: the shape of an output, with the batch, or `None`; another one is an error.
        named: the arguments of a `Conv2DTranspose`.
    """

    def __init__(self, *given: Any, expected: Sequence[int | None] | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.expected = None if expected is None else tuple(expected)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        super().build(input_shape)
        found = self.compute_output_shape(input_shape)
        if self.expected is not None and not _fits(self.expected, found):
            raise ModelError(
                f"`output_shape` of Deconvolution2D must be the shape of its output, {tuple(found)}. "
                f"Received: {self.expected}."
            )

    def call(self, inputs: Any) -> Any:
        """Returns the transposed convolution."""
        first = self.data_format == "channels_first"
        outputs = ops.conv_transpose(
            ops.transpose(inputs, _LAST) if first else inputs,
            self.kernel,
            strides=list(self.strides),
            padding=self.padding,
            output_padding=self.output_padding,
            dilation_rate=self.dilation_rate,
            data_format="channels_last",
        )
        outputs = outputs + self.bias if self.use_bias else outputs
        outputs = ops.transpose(outputs, _FIRST) if first else outputs
        return outputs if self.activation is None else self.activation(outputs)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), "expected": self.expected}


@keras.saving.register_keras_serializable(PACKAGE)
class TransposedConvLSTM2D(keras.layers.ConvLSTM2D):  # type: ignore[misc]  # Keras is untyped
    """Keras's `ConvLSTM2D`, of channels last, for sequences of images whose channels come first."""

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        """Make the weights."""
        batch, steps, channels, rows, columns = sequences_shape
        super().build((batch, steps, rows, columns, channels), initial_state_shape)

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False) -> Any:
        """Returns the last output, or all of them."""
        moved = ops.transpose(sequences, (0, 1, 3, 4, 2))
        outputs = super().call(moved, initial_state=initial_state, mask=mask, training=training)
        return ops.transpose(outputs, (0, 1, 4, 2, 3) if self.return_sequences else _FIRST)

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> Any:
        """Returns the last output's, or that of all."""
        batch, steps, channels, rows, columns = sequences_shape
        found = super().compute_output_shape((batch, steps, rows, columns, channels), initial_state_shape)
        return (*found[:-3], found[-1], *found[-3:-1])


def _fits(expected: Sequence[int | None], found: Sequence[int | None]) -> bool:
    known = [None, *expected] if len(expected) == len(found) - 1 else list(expected)
    # The batch is unknown, whatever the program wrote.
    pairs = list(zip(known, found, strict=False))[1:]
    return len(known) == len(found) and all(None in pair or pair[0] == pair[1] for pair in pairs)
