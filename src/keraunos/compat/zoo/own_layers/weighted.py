"""Layers with weights that Keras has not: scales, slopes, local filters. Runs on the driver and on workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.errors import ModelError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class ScaleAndShift(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Multiplies by a weight, adds a bias, or both; each is repeated along its dimensions of size 1.

    Args:
        size: the shape of weight and bias, with or without the batch.
        scale: whether there is a weight.
        shift: whether there is a bias.
        scale_initializer: of the weight.
        shift_initializer: of the bias.
        scale_regularizer: of the weight.
        shift_regularizer: of the bias.
        named: name, dtype and the like.
    """

    def __init__(
        self,
        size: Sequence[int],
        scale: bool = True,
        shift: bool = True,
        scale_initializer: Any = "ones",
        shift_initializer: Any = "zeros",
        scale_regularizer: Any = None,
        shift_regularizer: Any = None,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self.size = tuple(int(each) for each in size)
        self.scale, self.shift = scale, shift
        self.scale_initializer = keras.initializers.get(scale_initializer)
        self.shift_initializer = keras.initializers.get(shift_initializer)
        self.scale_regularizer = keras.regularizers.get(scale_regularizer)
        self.shift_regularizer = keras.regularizers.get(shift_regularizer)

    def build(self, input_shape: Any) -> None:
        """Make weight and bias."""
        self.kernel = self.bias = None
        if self.scale:
            self.kernel = self.add_weight(
                name="weight",
                shape=self.size,
                initializer=self.scale_initializer,
                regularizer=self.scale_regularizer,
            )
        if self.shift:
            self.bias = self.add_weight(
                name="bias", shape=self.size, initializer=self.shift_initializer, regularizer=self.shift_regularizer
            )

    def call(self, inputs: Any) -> Any:
        """Returns the scaled and shifted input."""
        found = inputs
        if self.kernel is not None:
            found = found * self._fitted(self.kernel, inputs.shape)
        if self.bias is not None:
            found = found + self._fitted(self.bias, inputs.shape)
        return found

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "size": self.size,
            "scale": self.scale,
            "shift": self.shift,
            "scale_initializer": keras.initializers.serialize(self.scale_initializer),
            "shift_initializer": keras.initializers.serialize(self.shift_initializer),
            "scale_regularizer": keras.regularizers.serialize(self.scale_regularizer),
            "shift_regularizer": keras.regularizers.serialize(self.shift_regularizer),
        }

    def _fitted(self, weight: Any, shape: Sequence[int | None]) -> Any:
        """Returns the weight in a form that is repeated over the batch."""
        row = tuple(shape[1:])
        count = 1
        for each in self.size:
            count *= each
        if count == 1:
            return ops.reshape(weight, [1] * len(shape))
        if None not in row and count == _product(row):
            return ops.reshape(weight, (1, *row))
        for size in ((1, *self.size), self.size):
            if len(size) == len(shape) and all(a in {1, b} for a, b in zip(size[1:], row, strict=True)):
                return ops.reshape(weight, size)
        raise ModelError(
            f"The `size` of layer {self.name!r} must be that of a row, {row}, or of a batch, with 1 where it is to be "
            f"repeated. Received: {self.size}."
        )


@keras.saving.register_keras_serializable(PACKAGE)
class ChannelPReLU(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Multiplies negative values by a trained slope: one for all, or one per channel.

    Args:
        planes: the number of channels, the first dimension behind the batch; 0 for one slope.
        initializer: of the slopes.
        named: name, dtype and the like.
    """

    def __init__(self, planes: int = 0, initializer: Any = None, **named: Any) -> None:
        super().__init__(**named)
        self.planes = int(planes)
        self.initializer = keras.initializers.get(initializer or keras.initializers.Constant(0.25))

    def build(self, input_shape: Any) -> None:
        """Make the slopes."""
        if self.planes and input_shape[1] != self.planes:
            raise ModelError(
                f"`n_output_plane` of PReLU must be the number of channels, {input_shape[1]}. Received: {self.planes}."
            )
        self.slope = self.add_weight(name="slope", shape=(self.planes or 1,), initializer=self.initializer)

    def call(self, inputs: Any) -> Any:
        """Returns the function's value."""
        slope = ops.reshape(self.slope, (1, -1, *([1] * (len(inputs.shape) - 2)))) if self.planes else self.slope
        return ops.maximum(inputs, 0) + slope * ops.minimum(inputs, 0)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "planes": self.planes,
            "initializer": keras.initializers.serialize(self.initializer),
        }


_SIDES = ("t_left", "a_left", "t_right", "a_right")


@keras.saving.register_keras_serializable(PACKAGE)
class SReLU(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """A line of slope 1 in the middle, and of learned slopes left and right of two learned thresholds.

    Args:
        initializers: of left threshold, left slope, right threshold (above the left one) and right slope.
        shared_axes: dimensions, counted from 1, along which weights are shared.
        named: name, dtype and the like.
    """

    def __init__(
        self,
        initializers: Sequence[Any] = ("zeros", "glorot_uniform", "glorot_uniform", "ones"),
        shared_axes: Sequence[int] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self.initializers = [keras.initializers.get(each) for each in initializers]
        self.shared_axes = None if shared_axes is None else [int(each) for each in shared_axes]

    def build(self, input_shape: Any) -> None:
        """Make thresholds and slopes."""
        shape = [1 if place in (self.shared_axes or ()) else size for place, size in enumerate(input_shape)][1:]
        for name, initializer in zip(_SIDES, self.initializers, strict=True):
            setattr(self, name, self.add_weight(name=name, shape=tuple(shape), initializer=initializer))

    def call(self, inputs: Any) -> Any:
        """Returns the function's value."""
        right = self.t_left + ops.abs(self.t_right)
        below = ops.minimum(inputs - self.t_left, 0) * self.a_left
        above = ops.maximum(inputs - right, 0) * self.a_right
        return ops.clip(inputs, self.t_left, right) + below + above

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "initializers": [keras.initializers.serialize(each) for each in self.initializers],
            "shared_axes": self.shared_axes,
        }


@keras.saving.register_keras_serializable(PACKAGE)
class LocallyConnected(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Filters over steps or images that are others at every place.

    Args:
        filters: how many there are at a place.
        kernel_size: their size, one number a dimension.
        strides: how far they are apart.
        padding: "valid" or "same".
        data_format: of images.
        activation: of the output.
        use_bias: whether there is a bias, for each place.
        kernel_regularizer: of the filters.
        bias_regularizer: of the bias.
        named: name, dtype and the like.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Sequence[int],
        strides: Sequence[int],
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Any = None,
        use_bias: bool = True,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self.filters = int(filters)
        self.kernel_size, self.strides = tuple(kernel_size), tuple(strides)
        self.padding, self.data_format, self.use_bias = padding, data_format, use_bias
        self.activation = keras.activations.get(activation)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)

    def build(self, input_shape: Any) -> None:
        """Make the filters and the bias."""
        places = self._places(input_shape)
        if None in places:
            raise ModelError(
                f"Layer {self.name!r} must know the size of its input, because each place has its own filters. "
                f"Received: the shape {tuple(input_shape)}."
            )
        patch = _product(self.kernel_size) * int(self._channels(input_shape))
        self.kernel = self.add_weight(
            name="kernel",
            shape=(_product(places), patch, self.filters),
            initializer="glorot_uniform",
            regularizer=self.kernel_regularizer,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(_product(places), self.filters),
                initializer="zeros",
                regularizer=self.bias_regularizer,
            )

    def call(self, inputs: Any) -> Any:
        """Returns the activation of each place's filters' outputs."""
        first = self.data_format == "channels_first"
        images = ops.transpose(inputs, (0, 2, 3, 1)) if first else inputs
        steps = len(self.kernel_size) == 1
        images = ops.expand_dims(images, 2) if steps else images
        size, strides = (*self.kernel_size, 1)[:2], (*self.strides, 1)[:2]
        patches = ops.image.extract_patches(
            images, size, strides=strides, padding=self.padding, data_format="channels_last"
        )
        places = self._places(inputs.shape)
        patches = ops.reshape(patches, (-1, _product(places), self.kernel.shape[1]))
        found = ops.einsum("bpi,pif->bpf", patches, self.kernel)
        found = self.activation(found if self.bias is None else found + self.bias)
        found = ops.reshape(found, (-1, *places, self.filters))
        return ops.transpose(found, (0, 3, 1, 2)) if first else found

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the places, each with the filters' outputs."""
        places = self._places(input_shape)
        if self.data_format == "channels_first":
            return (input_shape[0], self.filters, *places)
        return (input_shape[0], *places, self.filters)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
        }

    def _channels(self, shape: Sequence[int | None]) -> Any:
        return shape[1] if self.data_format == "channels_first" else shape[-1]

    def _places(self, shape: Sequence[int | None]) -> tuple[Any, ...]:
        sizes = shape[2:] if self.data_format == "channels_first" else shape[1:-1]
        return tuple(
            None if size is None else -(-(size if self.padding == "same" else size - kernel + 1) // stride)
            for size, kernel, stride in zip(sizes, self.kernel_size, self.strides, strict=True)
        )


def _product(sizes: Sequence[Any]) -> int:
    count = 1
    for each in sizes:
        count *= int(each)
    return count
