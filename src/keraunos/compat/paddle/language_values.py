"""The objects inside a layer's configuration: `Input`, `Bias`, `Conv`, `Pool` … Runs on the driver.

Arguments have the names and the order of Paddle's own. `None` means not given: a default applies.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

from keraunos.errors import ModelError

# The arguments of `Input`, `Bias`, projections and `Parameter` for a parameter.
PARAMETER_ATTRIBUTES = (
    "learning_rate",
    "momentum",
    "decay_rate",
    "decay_rate_l1",
    "initial_mean",
    "initial_std",
    "initial_strategy",
    "initial_smart",
    "num_batches_regularization",
    "sparse_remote_update",
    "sparse_update",
    "gradient_clipping_threshold",
    "is_static",
    "is_shared",
)

# The arguments that belong to an input alone; each is a field of `Input`.
INPUT_SETTINGS = ("conv", "norm", "pool", "image", "block_expand", "bilinear_interp", "maxout", "spp", "pad")


class ConfigValue:
    """Refuses keywords that it does not have, naming the nearest."""

    def __new__(cls, *_: Any, **keywords: Any) -> Self:
        """Returns an empty value, once the keywords are known to be right."""
        known = [each.name for each in fields(cls)]  # type: ignore[arg-type]
        for keyword in keywords:
            if keyword not in known:
                raise ModelError(unknown(f"`{cls.__name__}`", "argument", keyword, known))
        return super().__new__(cls)


def unknown(owner: str, what: str, name: str, known: Iterable[str]) -> str:
    """Returns the message for a name that an owner does not know, with the nearest one as a hint."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Leave out {name!r}."
    return f"{owner} knows no {what} {name!r}. Expected one of: {', '.join(names)}. Received: {name!r}. {hint}"


@dataclass(frozen=True)
class Bias(ConfigValue):
    """The bias of a layer, for `bias=`."""

    parameter_name: str | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    decay_rate: float | None = None
    decay_rate_l1: float | None = None
    initial_mean: float | None = None
    initial_std: float | None = None
    initial_strategy: int | None = None
    initial_smart: bool | None = None
    num_batches_regularization: int | None = None
    sparse_remote_update: bool | None = None
    gradient_clipping_threshold: float | None = None
    is_static: bool | None = None
    is_shared: bool | None = None


@dataclass(frozen=True)
class Conv(ConfigValue):
    """A convolution; sizes that are not given for y are those of x."""

    filter_size: int
    channels: int
    padding: int | None = None
    stride: int | None = None
    groups: int | None = None
    filter_channels: int | None = None
    output_x: int | None = None
    img_size: int | None = None
    caffe_mode: bool = True
    filter_size_y: int | None = None
    padding_y: int | None = None
    stride_y: int | None = None


@dataclass(frozen=True)
class ConvTrans(Conv):
    """A transposed convolution."""


@dataclass(frozen=True)
class Pool(ConfigValue):
    """A pooling; `start` is where the first window begins, on both axes."""

    pool_type: str
    channels: int
    size_x: int
    size_y: int | None = None
    img_width: int | None = None
    start: int | None = None
    stride: int | None = None
    stride_y: int | None = None
    padding: int | None = None
    padding_y: int | None = None


@dataclass(frozen=True)
class SpatialPyramidPool(ConfigValue):
    """Pooling into 1, 4, 16 … cells, `pyramid_height` times."""

    pool_type: str
    pyramid_height: int
    channels: int


@dataclass(frozen=True)
class Pad(ConfigValue):
    """Zeros before and after each axis, as pairs."""

    channels: int
    pad_c: Any = (0, 0)
    pad_h: Any = (0, 0)
    pad_w: Any = (0, 0)


@dataclass(frozen=True)
class Norm(ConfigValue):
    """A normalization of responses."""

    norm_type: str
    channels: int
    size: int
    scale: float
    pow: float
    output_x: int | None = None
    img_size: int | None = None
    blocked: bool | None = None


@dataclass(frozen=True)
class Image(ConfigValue):
    """The channels of an input that is an image."""

    channels: int
    img_size: int | None = None


@dataclass(frozen=True)
class BlockExpand(ConfigValue):
    """Patches of an image as the steps of a sequence."""

    channels: int
    padding_x: int = 0
    padding_y: int = 0
    stride_x: int = 0
    stride_y: int = 0
    block_x: int = 0
    block_y: int = 0
    img_size_x: int = 0
    img_size_y: int = 0
    output_x: int = 0
    output_y: int = 0


@dataclass(frozen=True)
class MaxOut(ConfigValue):
    """The largest of `groups` consecutive channels."""

    channels: int
    groups: int
    img_size_x: int = 0
    img_size_y: int = 0


@dataclass(frozen=True)
class BilinearInterp(ConfigValue):
    """An image of another size."""

    out_size_x: int | None = None
    out_size_y: int | None = None
    channels: int | None = None


@dataclass(frozen=True)
class Input(ConfigValue):
    """One input of a layer: where it comes from, the parameter on it, and what else belongs to it."""

    input_layer_name: str
    parameter_name: str | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    decay_rate: float | None = None
    decay_rate_l1: float | None = None
    initial_mean: float | None = None
    initial_std: float | None = None
    initial_strategy: int | None = None
    initial_smart: bool | None = None
    num_batches_regularization: int | None = None
    sparse_remote_update: bool | None = None
    sparse_update: bool | None = None
    gradient_clipping_threshold: float | None = None
    conv: Conv | None = None
    norm: Norm | None = None
    pool: Pool | None = None
    image: Image | None = None
    block_expand: BlockExpand | None = None
    format: str | None = None
    nnz: int | None = None
    is_static: bool | None = None
    is_shared: bool | None = None
    update_hooks: Any = None
    input_layer_argument: str | None = None
    bilinear_interp: BilinearInterp | None = None
    maxout: MaxOut | None = None
    spp: SpatialPyramidPool | None = None
    pad: Pad | None = None
    make_layer_name_in_submodel: bool = True  # about recurrent groups; without them it changes nothing, as in Paddle


def parameter_attributes(value: Any) -> dict[str, Any]:
    """Returns a value's arguments for its parameter, without those that are not given."""
    told = {name: getattr(value, name, None) for name in PARAMETER_ATTRIBUTES}
    return {name: each for name, each in told.items() if each is not None}
