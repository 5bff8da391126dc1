"""`zoo.pipeline.api.keras.layers.pooling`. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.pipeline.api.keras.layer_making import Shape, border, computed, made, ordering
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
]

Sizes = Sequence[int]


def MaxPooling1D(
    pool_length: int = 2,
    stride: int | None = None,
    border_mode: str = "valid",
    input_shape: Shape = None,
    pad: int = 0,
    **named: Any,
) -> Any:
    """Returns the largest of neighbouring steps, with `pad` steps that never are the largest on both sides."""
    if not pad:
        return made(keras.layers.MaxPooling1D, input_shape, named, pool_length, _stride(stride), border(border_mode))
    size, strides = [pool_length], [_stride(stride) or pool_length]
    return computed(
        "padded_pool", input_shape, named, kind="max", size=size, strides=strides, pads=[int(pad)], first=False
    )


def AveragePooling1D(
    pool_length: int = 2,
    stride: int | None = None,
    border_mode: str = "valid",
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns the mean of neighbouring steps."""
    return made(keras.layers.AveragePooling1D, input_shape, named, pool_length, _stride(stride), border(border_mode))


def MaxPooling2D(
    pool_size: Sizes = (2, 2),
    strides: Sizes | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    pads: Sizes | None = None,
    **named: Any,
) -> Any:
    """The largest of neighbouring points, with `pads` rows and columns that never are the largest on both sides."""
    if pads is not None:
        return _padded("max", pool_size, strides, pads, dim_ordering, input_shape, named)
    return _pooling(keras.layers.MaxPooling2D, pool_size, strides, border_mode, dim_ordering, input_shape, named)


def AveragePooling2D(
    pool_size: Sizes = (2, 2),
    strides: Sizes | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    pads: Sizes | None = None,
    count_include_pad: bool = False,
    **named: Any,
) -> Any:
    """Returns the mean of neighbouring points, with `pads` rows and columns on both sides that do not count."""
    if count_include_pad:
        raise JobError(
            "`count_include_pad` of AveragePooling2D must be False: Analytics Zoo never counted padding, whatever the "
            "argument. Received: True. Put a ZeroPadding2D before the layer to count zeros."
        )
    if pads is not None:
        return _padded("mean", pool_size, strides, pads, dim_ordering, input_shape, named)
    return _pooling(keras.layers.AveragePooling2D, pool_size, strides, border_mode, dim_ordering, input_shape, named)


def MaxPooling3D(
    pool_size: Sizes = (2, 2, 2),
    strides: Sizes | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns the largest of neighbouring points of volumes."""
    return _pooling(keras.layers.MaxPooling3D, pool_size, strides, border_mode, dim_ordering, input_shape, named)


def AveragePooling3D(
    pool_size: Sizes = (2, 2, 2),
    strides: Sizes | None = None,
    border_mode: str = "valid",
    dim_ordering: str = "th",
    input_shape: Shape = None,
    **named: Any,
) -> Any:
    """Returns the mean of neighbouring points of volumes."""
    return _pooling(keras.layers.AveragePooling3D, pool_size, strides, border_mode, dim_ordering, input_shape, named)


def GlobalMaxPooling1D(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the largest of all steps."""
    return made(keras.layers.GlobalMaxPooling1D, input_shape, named)


def GlobalAveragePooling1D(input_shape: Shape = None, **named: Any) -> Any:
    """Returns the mean of all steps."""
    return made(keras.layers.GlobalAveragePooling1D, input_shape, named)


def GlobalMaxPooling2D(dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Returns the largest of all points."""
    return made(keras.layers.GlobalMaxPooling2D, input_shape, named, data_format=ordering(dim_ordering))


def GlobalAveragePooling2D(dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Returns the mean of all points."""
    return made(keras.layers.GlobalAveragePooling2D, input_shape, named, data_format=ordering(dim_ordering))


def GlobalMaxPooling3D(dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Returns the largest of all points of volumes."""
    return made(keras.layers.GlobalMaxPooling3D, input_shape, named, data_format=ordering(dim_ordering))


def GlobalAveragePooling3D(dim_ordering: str = "th", input_shape: Shape = None, **named: Any) -> Any:
    """Returns the mean of all points of volumes."""
    return made(keras.layers.GlobalAveragePooling3D, input_shape, named, data_format=ordering(dim_ordering))


def _stride(stride: int | None) -> int | None:
    # In the JVM -1 stood for none.
    return None if stride in {None, -1} else stride


def _pooling(
    kind: Any, size: Sizes, strides: Sizes | None, border_mode: str, dim_ordering: str, input_shape: Shape, named: Any
) -> Any:
    steps = None if strides is None else tuple(strides)
    layout = ordering(dim_ordering)
    return made(kind, input_shape, named, tuple(size), steps, border(border_mode), data_format=layout)


def _padded(
    kind: str, size: Sizes, strides: Sizes | None, pads: Sizes, dim_ordering: str, input_shape: Shape, named: Any
) -> Any:
    first = ordering(dim_ordering) == "channels_first"
    steps = list(size if strides is None else strides)
    return computed(
        "padded_pool", input_shape, named, kind=kind, size=list(size), strides=steps, pads=list(pads), first=first
    )
