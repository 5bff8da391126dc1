"""BigDL's modules with weights. Runs on the driver.

Their initial weights are BigDL's: uniform within 1/sqrt(inputs) of zero, unless a module documents otherwise. A module
of BigDL's has a matrix with a row for each output, and filters as (1, outputs, inputs, rows, columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.nn.initialization_method import (
    ConstInitMethod,
    InitializationMethod,
    RandomNormal,
    RandomUniform,
    Zeros,
)
from keraunos.compat.zoo.bigdl.nn.module import Layer, Weight
from keraunos.compat.zoo.bigdl.nn.shape_modules import layout
from keraunos.compat.zoo.own_layers.channels_first import PaddedConv2D, TransposedConv2D
from keraunos.compat.zoo.own_layers.running import RunningNormalization
from keraunos.compat.zoo.own_layers.tables import WordTable
from keraunos.compat.zoo.own_layers.weighted import ChannelPReLU, ScaleAndShift
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "Add",
    "BatchNormalization",
    "CAdd",
    "CMul",
    "Linear",
    "LookupTable",
    "Mul",
    "PReLU",
    "Scale",
    "SpatialBatchNormalization",
    "SpatialConvolution",
    "TemporalConvolution",
]

DOUBLEMAX = 1.7976931348623157e308


class _Weighted(Layer):
    """A layer of Keras with its weights made."""

    @in_tensorflow_2
    def _begin(
        self,
        layer: Any,
        shape: Sequence[int | None],
        weights: Sequence[tuple[str, str]],
        fans: tuple[int, int],
        methods: dict[str, InitializationMethod] | None = None,
        turns: tuple[Any, Any] | None = None,
    ) -> None:
        """Make the weights: (name, attribute of the layer); `turns` lays the first of them out as BigDL does."""
        layer.build((None, *shape))
        found = []
        for number, (name, attribute) in enumerate(weights):
            if getattr(layer, attribute, None) is not None:
                turned = turns if turns is not None and number == 0 else ()
                begins = (methods or {}).get(name, RandomUniform())
                found.append(Weight(name, getattr(layer, attribute), fans, begins, *turned))
        super().__init__(layer, found)
        self._row = tuple(shape)
        self._draw()

    def known_shapes(self) -> list[tuple[int | None, ...]] | None:
        """Returns the shape of the input, where it is all known."""
        return [self._row] if self._row and None not in self._row else None

    @in_tensorflow_2
    def _give(self, weight: Any, bias: Any, *gradients: Any) -> None:
        """Set the initial weights that a program passes."""
        if any(each is not None for each in gradients):
            raise JobError(
                "`init_grad_weight` and `init_grad_bias` must be left out: there are no initial gradients. Received: "
                "an array."
            )
        for own in self._weights:
            given = bias if own.name == "bias" else weight
            if given is not None:
                own.assign(given)


def _turned(array: Array) -> Array:
    return array.T


class Linear(_Weighted):
    """A matrix and a bias."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        with_bias: bool = True,
        wRegularizer: Any = None,
        bRegularizer: Any = None,
        init_weight: Any = None,
        init_bias: Any = None,
        init_grad_weight: Any = None,
        init_grad_bias: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        layer = keras.layers.Dense(
            output_size, use_bias=with_bias, kernel_regularizer=wRegularizer, bias_regularizer=bRegularizer
        )
        weights = (("weight", "kernel"), ("bias", "bias"))
        self._begin(layer, (input_size,), weights, (input_size, output_size), turns=(_turned, _turned))
        self._give(init_weight, init_bias, init_grad_weight, init_grad_bias)


class SpatialConvolution(_Weighted):
    """Filters over images. A pad of -1 keeps the size divided by the step."""

    def __init__(
        self,
        n_input_plane: int,
        n_output_plane: int,
        kernel_w: int,
        kernel_h: int,
        stride_w: int = 1,
        stride_h: int = 1,
        pad_w: int = 0,
        pad_h: int = 0,
        n_group: int = 1,
        propagate_back: bool = True,
        wRegularizer: Any = None,
        bRegularizer: Any = None,
        init_weight: Any = None,
        init_bias: Any = None,
        init_grad_weight: Any = None,
        init_grad_bias: Any = None,
        with_bias: bool = True,
        data_format: str = "NCHW",
        bigdl_type: str = "float",
    ) -> None:
        if n_group != 1:
            raise JobError(
                f"`n_group` of SpatialConvolution must be 1. Received: {n_group!r}. Put a convolution for each group "
                "behind a Narrow of its channels, in a Concat."
            )
        form = layout(data_format)
        options: dict[str, Any] = {
            "strides": (stride_h, stride_w),
            "use_bias": with_bias,
            "kernel_regularizer": wRegularizer,
            "bias_regularizer": bRegularizer,
            "data_format": form,
        }
        size = (kernel_h, kernel_w)
        if -1 in {pad_w, pad_h}:
            layer = TransposedConv2D(n_output_plane, size, padding="same", **options)
        else:
            layer = PaddedConv2D(
                n_output_plane, size, pads=(pad_h, pad_w), propagate_back=bool(propagate_back), **options
            )
        shape = (n_input_plane, None, None) if form == "channels_first" else (None, None, n_input_plane)
        points = kernel_w * kernel_h
        self._begin(
            layer,
            shape,
            (("weight", "kernel"), ("bias", "bias")),
            (n_input_plane * points, n_output_plane * points),
            turns=(filters_of_bigdl, filters_of_keras),
        )
        self._give(init_weight, init_bias, init_grad_weight, init_grad_bias)


class TemporalConvolution(_Weighted):
    """Filters over steps, whose channels come last."""

    def __init__(
        self,
        input_frame_size: int,
        output_frame_size: int,
        kernel_w: int,
        stride_w: int = 1,
        propagate_back: bool = True,
        weight_regularizer: Any = None,
        bias_regularizer: Any = None,
        init_weight: Any = None,
        init_bias: Any = None,
        init_grad_weight: Any = None,
        init_grad_bias: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        if not propagate_back:
            raise JobError("`propagate_back` of TemporalConvolution must be True. Received: False. Freeze the modules.")
        layer = keras.layers.Conv1D(
            output_frame_size,
            kernel_w,
            strides=stride_w,
            kernel_regularizer=weight_regularizer,
            bias_regularizer=bias_regularizer,
        )

        def of_keras(array: Array) -> Array:
            return array.T.reshape(kernel_w, input_frame_size, output_frame_size)

        self._begin(
            layer,
            (None, input_frame_size),
            (("weight", "kernel"), ("bias", "bias")),
            (input_frame_size * kernel_w, output_frame_size * kernel_w),
            turns=(lambda array: array.reshape(-1, output_frame_size).T, of_keras),
        )
        self._give(init_weight, init_bias, init_grad_weight, init_grad_bias)


class BatchNormalization(_Weighted):
    """Outputs of mean 0 and variance 1 over a batch, then scaled and shifted; for rows."""

    _places: tuple[None, ...] = ()

    def __init__(
        self,
        n_output: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        init_weight: Any = None,
        init_bias: Any = None,
        init_grad_weight: Any = None,
        init_grad_bias: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        self._normalize(n_output, eps, momentum, affine=affine, axis=1, shape=(n_output, *self._places))
        self._give(init_weight, init_bias, init_grad_weight, init_grad_bias)

    def _normalize(
        self, n_output: int, eps: float, momentum: float, *, affine: bool, axis: int, shape: Sequence[int | None]
    ) -> None:
        # BigDL's momentum is the share of the new batch.
        layer = RunningNormalization(axis=axis, momentum=1.0 - momentum, epsilon=eps, center=affine, scale=affine)
        weights = (("weight", "gamma"), ("bias", "beta"))
        self._begin(layer, shape, weights, (n_output, n_output), {"weight": RandomUniform(0.0, 1.0), "bias": Zeros()})

    @in_tensorflow_2
    def set_running_mean(self, running_mean: Array) -> BatchNormalization:
        """Set the mean of all batches so far."""
        self._keras.moving_mean.assign(running_mean)
        return self

    @in_tensorflow_2
    def set_running_std(self, running_std: Array) -> BatchNormalization:
        """Set the variance of all batches so far."""
        self._keras.moving_variance.assign(running_std)
        return self


class SpatialBatchNormalization(BatchNormalization):
    """The same for images, channel by channel."""

    def __init__(
        self,
        n_output: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        init_weight: Any = None,
        init_bias: Any = None,
        init_grad_weight: Any = None,
        init_grad_bias: Any = None,
        data_format: str = "NCHW",
        bigdl_type: str = "float",
    ) -> None:
        first = layout(data_format) == "channels_first"
        shape = (n_output, None, None) if first else (None, None, n_output)
        self._normalize(n_output, eps, momentum, affine=affine, axis=1 if first else 3, shape=shape)
        self._give(init_weight, init_bias, init_grad_weight, init_grad_bias)


class LookupTable(_Weighted):
    """A row of a table for each whole number, counted from 1; that of `padding_value` learns as the others do."""

    def __init__(
        self,
        n_index: int,
        n_output: int,
        padding_value: float = 0.0,
        max_norm: float = DOUBLEMAX,
        norm_type: float = 2.0,
        should_scale_grad_by_freq: bool = False,
        wRegularizer: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        if max_norm != DOUBLEMAX or should_scale_grad_by_freq or padding_value:
            raise JobError(
                "`padding_value`, `max_norm` and `should_scale_grad_by_freq` of LookupTable must be left out. "
                f"Received: {padding_value!r}, {max_norm!r}, {should_scale_grad_by_freq!r}. Use "
                "Embedding(mask_zero=True) of zoo.pipeline.api.keras.layers for a row of zeros."
            )
        layer = WordTable(n_index, n_output, embeddings_regularizer=wRegularizer, first=1)
        weights = (("weight", "embeddings"),)
        self._begin(layer, (None,), weights, (n_index, n_output), {"weight": RandomNormal(0.0, 1.0)})


class _Scaled(_Weighted):
    """A weight, a bias, or both, of a given size."""

    def _scale(self, size: Sequence[int], regularizer: Any = None, *, scale: bool = True, shift: bool = True) -> None:
        layer = ScaleAndShift(
            size, scale=scale, shift=shift, scale_regularizer=regularizer, shift_regularizer=regularizer
        )
        count = int(np.prod(list(size)))
        self._begin(layer, (), (("weight", "kernel"), ("bias", "bias")), (count, count))


class CMul(_Scaled):
    """The input times a weight, which is repeated along its dimensions of size 1."""

    def __init__(self, size: Sequence[int], wRegularizer: Any = None, bigdl_type: str = "float") -> None:
        self._scale(size, wRegularizer, shift=False)


class CAdd(_Scaled):
    """The input and a bias, which is repeated along its dimensions of size 1."""

    def __init__(self, size: Sequence[int], bRegularizer: Any = None, bigdl_type: str = "float") -> None:
        self._scale(size, bRegularizer, scale=False)


class Add(_Scaled):
    """The input and a bias."""

    def __init__(self, input_size: int, bigdl_type: str = "float") -> None:
        self._scale((input_size,), scale=False)


class Mul(_Scaled):
    """The input times one weight."""

    def __init__(self, bigdl_type: str = "float") -> None:
        self._scale((1,), shift=False)


class Scale(_Scaled):
    """The input times a weight, and a bias."""

    def __init__(self, size: Sequence[int], bigdl_type: str = "float") -> None:
        self._scale(size)


class PReLU(_Weighted):
    """Multiplies negative values by a trained slope: one for all, or one per channel."""

    def __init__(self, n_output_plane: int = 0, bigdl_type: str = "float") -> None:
        layer = ChannelPReLU(n_output_plane)
        self._begin(layer, (n_output_plane or 1,), (("weight", "slope"),), (1, 1), {"weight": ConstInitMethod(0.25)})


def filters_of_bigdl(array: Array) -> Array:
    """Filters of Keras's as BigDL lays them out."""
    return np.expand_dims(array.transpose(3, 2, 0, 1), 0)


def filters_of_keras(array: Array) -> Array:
    """Filters of BigDL's as Keras lays them out."""
    return np.squeeze(array, 0).transpose(2, 3, 1, 0)
