"""BigDL's modules without weights that change shapes, pool images, and join tables. Runs on the driver.

Dimensions are counted from 1, the batch being the first, unless a module is given the number of dimensions of a row:
then they are those of a row if an input has one dimension more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.zoo.bigdl.nn.element_modules import Function, OfKeras
from keraunos.compat.zoo.bigdl.util.common import INTMAX, INTMIN
from keraunos.compat.zoo.own_layers.drawn import GaussianSampler as _GaussianSampler
from keraunos.errors import JobError, one_of
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled

__all__ = [
    "MM",
    "CAddTable",
    "CAveTable",
    "CDivTable",
    "CMaxTable",
    "CMinTable",
    "CMulTable",
    "CSubTable",
    "DotProduct",
    "FlattenTable",
    "GaussianSampler",
    "InferReshape",
    "JoinTable",
    "Masking",
    "Max",
    "Mean",
    "Min",
    "Narrow",
    "Replicate",
    "Reshape",
    "Reverse",
    "Select",
    "SelectTable",
    "SpatialAveragePooling",
    "SpatialCrossMapLRN",
    "SpatialDropout2D",
    "SpatialMaxPooling",
    "SpatialZeroPadding",
    "SplitTable",
    "Squeeze",
    "Sum",
    "TemporalMaxPooling",
    "Transpose",
    "Unsqueeze",
    "View",
]

_FORMATS = {"NCHW": "channels_first", "NHWC": "channels_last"}


class CAddTable(OfKeras):
    """The sum of several inputs."""

    def __init__(self, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Add)


class CMulTable(OfKeras):
    """The product of several inputs."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Multiply)


class CSubTable(OfKeras):
    """The difference of two inputs."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Subtract)


class CMaxTable(OfKeras):
    """The largest of several inputs, element by element."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Maximum)


class CMinTable(OfKeras):
    """The smallest of several inputs, element by element."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Minimum)


class CAveTable(OfKeras):
    """The mean of several inputs."""

    def __init__(self, inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Average)


class CDivTable(Function):
    """The first input divided by the second."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("divide")


class DotProduct(Function):
    """The inner products of the rows of two inputs."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("product")


class FlattenTable(Function):
    """A list of all tensors in nested lists."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__("flat")


class MM(Function):
    """The matrix products of two inputs."""

    def __init__(self, trans_a: bool = False, trans_b: bool = False, bigdl_type: str = "float") -> None:
        super().__init__("matrices", left=bool(trans_a), right=bool(trans_b))


class GaussianSampler(OfKeras):
    """Draws from normal distributions of means and logarithms of variances."""

    def __init__(self, bigdl_type: str = "float") -> None:
        super().__init__(_GaussianSampler)


class SelectTable(Function):
    """One of several inputs, counted from 1."""

    def __init__(self, index: int, bigdl_type: str = "float") -> None:
        if index < 1:
            raise JobError(f"`index` of SelectTable must be counted from 1. Received: {index!r}.")
        super().__init__("select_table", index=int(index) - 1)


class JoinTable(Function):
    """Several inputs, one behind the other along a dimension."""

    def __init__(self, dimension: int, n_input_dims: int, bigdl_type: str = "float") -> None:
        super().__init__("join", dim=axis_of(dimension), row=n_input_dims)


class SplitTable(Function):
    """The parts of an input along a dimension."""

    def __init__(self, dimension: int, n_input_dims: int = -1, bigdl_type: str = "float") -> None:
        super().__init__("split", dim=axis_of(dimension), row=n_input_dims)


class Select(Function):
    """One place along a dimension, counted from 1, or from -1 at the end; the dimension goes away."""

    def __init__(self, dim: int, index: int, bigdl_type: str = "float") -> None:
        if index == 0:
            raise JobError("`index` of Select must be counted from 1, or from -1 at the end. Received: 0.")
        super().__init__("select", dim=axis_of(dim), index=index - 1 if index > 0 else index)


class Narrow(Function):
    """Some places along a dimension; a length of -1 is up to the end."""

    def __init__(self, dimension: int, offset: int, length: int = 1, bigdl_type: str = "float") -> None:
        if offset < 1:
            raise JobError(f"`offset` of Narrow must be counted from 1. Received: {offset!r}.")
        super().__init__("narrow", dim=axis_of(dimension), offset=offset - 1, length=length)


class Squeeze(Function):
    """A dimension of size 1 goes away."""

    def __init__(self, dim: int, num_input_dims: int = INTMIN, bigdl_type: str = "float") -> None:
        super().__init__("squeeze", dims=[axis_of(dim) + (num_input_dims != INTMIN)])


class Unsqueeze(Function):
    """A dimension of size 1 more."""

    def __init__(self, pos: int, num_input_dims: int = INTMIN, bigdl_type: str = "float") -> None:
        super().__init__("unsqueeze", pos=int(pos), row=None if num_input_dims == INTMIN else int(num_input_dims))


class Replicate(Function):
    """The input several times along a new dimension."""

    def __init__(self, n_features: int, dim: int = 1, n_dim: int = INTMAX, bigdl_type: str = "float") -> None:
        super().__init__("replicate", dim=axis_of(dim), count=n_features, row=None if n_dim == INTMAX else int(n_dim))


class Reverse(Function):
    """A dimension the other way round."""

    def __init__(self, dimension: int = 1, is_inplace: bool = False, bigdl_type: str = "float") -> None:
        super().__init__("reverse", dim=axis_of(dimension))


class Sum(Function):
    """The sum, or the mean, along a dimension."""

    def __init__(
        self,
        dimension: int = 1,
        n_input_dims: int = -1,
        size_average: bool = False,
        squeeze: bool = True,
        bigdl_type: str = "float",
    ) -> None:
        kind = "mean" if size_average else "sum"
        super().__init__(kind, dim=axis_of(dimension), row=n_input_dims, keep=not squeeze)


class Mean(Function):
    """The mean along a dimension."""

    def __init__(
        self, dimension: int = 1, n_input_dims: int = -1, squeeze: bool = True, bigdl_type: str = "float"
    ) -> None:
        super().__init__("mean", dim=axis_of(dimension), row=n_input_dims, keep=not squeeze)


class Max(Function):
    """The largest along a dimension."""

    def __init__(self, dim: int, num_input_dims: int = INTMIN, bigdl_type: str = "float") -> None:
        super().__init__("max", dim=axis_of(dim), row=num_input_dims, return_value=True)


class Min(Function):
    """The smallest along a dimension."""

    def __init__(self, dim: int = 1, num_input_dims: int = INTMIN, bigdl_type: str = "float") -> None:
        super().__init__("min", dim=axis_of(dim), row=num_input_dims)


class Reshape(OfKeras):
    """Rows in another shape."""

    def __init__(self, size: Sequence[int], batch_mode: bool | None = None, bigdl_type: str = "float") -> None:
        if batch_mode is False:
            raise JobError(
                "`batch_mode` of Reshape must be True or None: an input always has a batch. Received: False."
            )
        super().__init__(keras.layers.Reshape, tuple(int(each) for each in size))


class InferReshape(OfKeras):
    """Rows in another shape, of which one size may be -1."""

    def __init__(self, size: Sequence[int], batch_mode: bool = False, bigdl_type: str = "float") -> None:
        if not batch_mode:
            raise JobError("`batch_mode` of InferReshape must be True: an input always has a batch. Received: False.")
        super().__init__(keras.layers.Reshape, tuple(int(each) for each in size))


class View(OfKeras):
    """Rows in another shape."""

    def __init__(self, sizes: Sequence[int], num_input_dims: int = 0, bigdl_type: str = "float") -> None:
        super().__init__(
            keras.layers.Reshape, tuple(int(each) for each in ([sizes] if isinstance(sizes, int) else sizes))
        )


class SpatialZeroPadding(OfKeras):
    """Zeros around an image."""

    def __init__(self, pad_left: int, pad_right: int, pad_top: int, pad_bottom: int, bigdl_type: str = "float") -> None:
        super().__init__(
            keras.layers.ZeroPadding2D, ((pad_top, pad_bottom), (pad_left, pad_right)), data_format="channels_first"
        )


class SpatialDropout2D(OfKeras):
    """Drop a share of the channels of images in training."""

    def __init__(self, init_p: float = 0.5, data_format: str = "NCHW", bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.SpatialDropout2D, float(init_p), data_format=layout(data_format))


class SpatialCrossMapLRN(Function):
    """Each point divided by a power of (k + alpha times the mean square of neighbouring channels)."""

    def __init__(
        self,
        size: int = 5,
        alpha: float = 1.0,
        beta: float = 0.75,
        k: float = 1.0,
        data_format: str = "NCHW",
        bigdl_type: str = "float",
    ) -> None:
        super().__init__(
            "across_channels",
            alpha=float(alpha),
            k=float(k),
            beta=float(beta),
            n=int(size),
            axis=1 if layout(data_format) == "channels_first" else 3,
        )


class Masking(OfKeras):
    """Steps that later modules leave out where all elements have a value."""

    def __init__(self, mask_value: float = 0.0, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.Masking, float(mask_value))


class TemporalMaxPooling(OfKeras):
    """The largest of neighbouring steps."""

    def __init__(self, k_w: int, d_w: int = -1, bigdl_type: str = "float") -> None:
        super().__init__(keras.layers.MaxPooling1D, k_w, None if d_w == -1 else d_w)


class Transpose(Function):
    """Pairs of dimensions change places, one after the other."""

    def __init__(self, permutations: Sequence[Sequence[int]], bigdl_type: str = "float") -> None:
        self._pairs = [(axis_of(left), axis_of(right)) for left, right in permutations]
        super().__init__("swapped", pairs=self._pairs)


class SpatialMaxPooling(Function):
    """The largest of neighbouring points. A pad of -1 keeps the size divided by the step."""

    def __init__(
        self,
        kw: int,
        kh: int,
        dw: int,
        dh: int,
        pad_w: int = 0,
        pad_h: int = 0,
        to_ceil: bool = False,
        format: str = "NCHW",  # noqa: A002 - BigDL's name
        bigdl_type: str = "float",
    ) -> None:
        super().__init__("padded_pool", **_pooling("max", (kh, kw), (dh, dw), (pad_h, pad_w), to_ceil, format))


class SpatialAveragePooling(Function):
    """The mean of neighbouring points, or of all. A pad of -1 keeps the size divided by the step."""

    def __init__(
        self,
        kw: int,
        kh: int,
        dw: int = 1,
        dh: int = 1,
        pad_w: int = 0,
        pad_h: int = 0,
        global_pooling: bool = False,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divide: bool = True,
        format: str = "NCHW",  # noqa: A002 - BigDL's name
        bigdl_type: str = "float",
    ) -> None:
        if not divide:
            raise JobError(
                "`divide` of SpatialAveragePooling must be True. Received: False. Put a MulConstant behind it."
            )
        if global_pooling:
            axes = [2, 3] if layout(format) == "channels_first" else [1, 2]
            super().__init__("places", dims=axes)
            return
        kind = "mean_with_zeros" if count_include_pad else "mean"
        super().__init__("padded_pool", **_pooling(kind, (kh, kw), (dh, dw), (pad_h, pad_w), ceil_mode, format))


def axis_of(dimension: int) -> int:
    """Returns a dimension counted from 0; from the end where it is negative."""
    if dimension == 0:
        raise JobError("A dimension must be counted from 1, or from -1 at the end. Received: 0.")
    return dimension - 1 if dimension > 0 else dimension


def layout(name: str) -> str:
    """Keras's data format for BigDL's."""
    if name not in _FORMATS:
        raise JobError(one_of("format", name, _FORMATS))
    return _FORMATS[name]


def _pooling(
    kind: str, size: Sequence[int], strides: Sequence[int], pads: Sequence[int], ceil: bool, form: str
) -> dict[str, Any]:
    same = -1 in pads
    return {
        "kind": "mean" if same and kind != "max" else kind,
        "size": list(size),
        "strides": list(strides),
        "pads": [0, 0] if same else list(pads),
        "first": layout(form) == "channels_first",
        "ceil": bool(ceil),
        "same": same,
    }
