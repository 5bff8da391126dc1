"""Layers of images: convolution, pooling, normalization, and changes of their shape. On the driver."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.trainer_config_helpers.activations import BaseActivation, ReluActivation
from keraunos.compat.paddle.trainer_config_helpers.attrs import DROPOUT, ExtraLayerAttribute, ParameterAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import (
    bias,
    channels,
    conv_settings,
    conv_start,
    define,
    named,
    parameter,
    weighted,
    xy,
)
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput, LayerType, a_layer, an_activation
from keraunos.compat.paddle.trainer_config_helpers.poolings import (
    AvgPooling,
    BasePoolingType,
    CudnnAvgPooling,
    CudnnMaxPooling,
    MaxPooling,
)
from keraunos.errors import ModelError, one_of

__all__ = [
    "batch_norm_layer",
    "bilinear_interp_layer",
    "block_expand_layer",
    "cross_channel_norm_layer",
    "img_cmrnorm_layer",
    "img_conv_layer",
    "img_pool_layer",
    "maxout_layer",
    "pad_layer",
    "rotate_layer",
    "spp_layer",
]


def img_conv_layer(
    input: LayerOutput,
    filter_size: int | Sequence[int],
    num_filters: int,
    name: str | None = None,
    num_channels: int | None = None,
    act: BaseActivation | None = None,
    groups: int = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    bias_attr: ParameterAttribute | bool | None = None,
    param_attr: ParameterAttribute | None = None,
    shared_biases: bool = True,
    layer_attr: ExtraLayerAttribute | None = None,
    filter_size_y: int | None = None,
    stride_y: int | None = None,
    padding_y: int | None = None,
    trans: bool = False,
    layer_type: str | None = None,
) -> LayerOutput:
    """Returns a convolution over an image.

    Args:
        input: an image.
        filter_size: along x, or a pair along x and y; so are `stride` and `padding`.
        num_filters: channels of its output image.
        name: the layer's.
        num_channels: of the input, if its layer does not declare it.
        act: relu by default.
        groups: into how many groups channels and filters are divided.
        stride: between two places of the filter.
        padding: zeros around the image.
        bias_attr: a bias that starts at 0 by default; `False` for none.
        param_attr: of the filters; N(0, 2 / (filter_size² channels)) to start with.
        shared_biases: one bias for each filter, instead of one for each place of the output.
        layer_attr: dropout.
        filter_size_y: along y, where it is another; so are `stride_y` and `padding_y`.
        stride_y: along y.
        padding_y: along y.
        trans: the transposed convolution instead.
        layer_type: `exconv` or `cudnn_conv`, transposed `exconvt` or `cudnn_convt`, where the raw type matters.
    """
    function = "img_conv_layer"
    layer = a_layer(input, function)
    depth = channels(layer, num_channels, function)
    sides = xy(filter_size, filter_size_y)
    conv = conv_settings(sides, xy(stride, stride_y), xy(padding, padding_y), depth, groups)
    return define(
        function,
        _conv_type(layer_type, trans=trans),
        named(name, "conv"),
        [raw.Input(layer.name, conv=conv, **conv_start(parameter(param_attr), sides[0], depth))],
        [layer],
        activation=an_activation(act, ReluActivation(), function),
        depth=num_filters,
        layer_attr=layer_attr,
        supports=(DROPOUT,),
        bias=bias(bias_attr),
        num_filters=num_filters,
        shared_biases=shared_biases,
    )


def img_pool_layer(
    input: LayerOutput,
    pool_size: int | Sequence[int],
    name: str | None = None,
    num_channels: int | None = None,
    pool_type: BasePoolingType | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    layer_attr: ExtraLayerAttribute | None = None,
    pool_size_y: int | None = None,
    stride_y: int | None = None,
    padding_y: int | None = None,
    ceil_mode: bool = True,
) -> LayerOutput:
    """Pooling over an image.

    Args:
        input: an image.
        pool_size: along x, or a pair along x and y; so are `stride` and `padding`.
        name: the layer's.
        num_channels: of the input, if its layer does not declare it.
        pool_type: `MaxPooling()` by default.
        stride: between two windows.
        padding: around the image.
        layer_attr: `device` only.
        pool_size_y: along y, where it is another; so are `stride_y` and `padding_y`.
        stride_y: along y.
        padding_y: along y.
        ceil_mode: whether a last window that reaches over the edge counts.
    """
    layer = a_layer(input, "img_pool_layer")
    depth = channels(layer, num_channels, "img_pool_layer")
    (width, height), (across, down), (pad_x, pad_y) = (
        xy(pool_size, pool_size_y),
        xy(stride, stride_y),
        xy(padding, padding_y),
    )
    pool = raw.Pool(
        pool_type=_image_pooling(pool_type, "img_pool_layer"),
        channels=depth,
        size_x=width,
        size_y=height,
        stride=across,
        stride_y=down,
        padding=pad_x,
        padding_y=pad_y,
    )
    return define(
        "img_pool_layer",
        LayerType.POOL_LAYER,
        named(name, "pool"),
        [raw.Input(layer.name, pool=pool)],
        [layer],
        depth=depth,
        layer_attr=layer_attr,
        ceil_mode=ceil_mode,
    )


def spp_layer(
    input: LayerOutput,
    name: str | None = None,
    num_channels: int | None = None,
    pool_type: BasePoolingType | None = None,
    pyramid_height: int | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Pooling of an image into 1, 4, 16, … cells, `pyramid_height` times, side by side."""
    layer = a_layer(input, "spp_layer")
    pyramid = raw.SpatialPyramidPool(
        pool_type=_image_pooling(pool_type, "spp_layer"),
        channels=channels(layer, num_channels, "spp_layer"),
        pyramid_height=pyramid_height,  # type: ignore[arg-type]  # `None` is refused where it is read
    )
    made = [raw.Input(layer.name, spp=pyramid)]
    return define("spp_layer", LayerType.SPP_LAYER, named(name, "spp"), made, [layer], layer_attr=layer_attr)


def img_cmrnorm_layer(
    input: LayerOutput,
    size: int,
    scale: float = 0.0128,
    power: float = 0.75,
    name: str | None = None,
    num_channels: int | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Each place of an image divided by (1 + scale/size · Σ squares over `size` channels around it) to the power."""
    layer = a_layer(input, "img_cmrnorm_layer")
    depth = channels(layer, num_channels, "img_cmrnorm_layer")
    norm = raw.Norm(norm_type="cmrnorm-projection", channels=depth, size=size, scale=scale, pow=power, blocked=False)
    return define(
        "img_cmrnorm_layer",
        LayerType.NORM_LAYER,
        named(name, "crmnorm"),
        [raw.Input(layer.name, norm=norm)],
        [layer],
        depth=depth,
        layer_attr=layer_attr,
    )


def cross_channel_norm_layer(
    input: LayerOutput, name: str | None = None, param_attr: ParameterAttribute | None = None
) -> LayerOutput:
    """Each place of an image divided by its length over the channels, times a learned scale for each channel."""
    layer = a_layer(input, "cross_channel_norm_layer")
    depth = channels(layer, None, "cross_channel_norm_layer")
    norm = raw.Norm(norm_type="cross-channel-norm", channels=depth, size=layer.size, scale=0, pow=0, blocked=False)
    return define(
        "cross_channel_norm_layer",
        LayerType.NORM_LAYER,
        named(name, "cross_channel_norm"),
        [weighted(layer, parameter(param_attr), norm=norm)],
        [layer],
        depth=depth,
    )


def batch_norm_layer(
    input: LayerOutput,
    act: BaseActivation | None = None,
    name: str | None = None,
    num_channels: int | None = None,
    bias_attr: ParameterAttribute | bool | None = None,
    param_attr: ParameterAttribute | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
    batch_norm_type: str | None = None,
    moving_average_fraction: float = 0.9,
    use_global_stats: bool | None = None,
) -> LayerOutput:
    """Normalization over the batch, of each channel of an image or of each column.

    Args:
        input: a layer.
        act: relu by default.
        name: the layer's.
        num_channels: of the input, where its layer does not say; the columns of what is no image.
        bias_attr: the shift, which starts at 0; `False` for none.
        param_attr: the scale, which starts at 1.
        layer_attr: dropout.
        batch_norm_type: `batch_norm` or `cudnn_batch_norm`; the numbers are the same.
        moving_average_fraction: how much of the moving mean and variance a batch leaves.
        use_global_stats: whether the moving mean and variance are used when predicting.
    """
    layer = a_layer(input, "batch_norm_layer")
    known = layer.num_filters if num_channels is None else num_channels
    image = raw.Image(channels=layer.size if known is None else known)
    scale = ParameterAttribute(initial_mean=1.0, initial_std=0.0) if param_attr is None else parameter(param_attr)
    return define(
        "batch_norm_layer",
        LayerType.BATCH_NORM_LAYER,
        named(name, "batch_norm"),
        [weighted(layer, scale, image=image)],
        [layer],
        activation=an_activation(act, ReluActivation(), "batch_norm_layer"),
        depth=known,
        layer_attr=layer_attr,
        supports=(DROPOUT,),
        bias=bias(bias_attr),
        moving_average_fraction=moving_average_fraction,
        batch_norm_type=batch_norm_type,
        use_global_stats=use_global_stats,
    )


def maxout_layer(
    input: LayerOutput,
    groups: int,
    num_channels: int | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the largest of each `groups` channels in a row."""
    layer = a_layer(input, "maxout_layer")
    depth = channels(layer, num_channels, "maxout_layer")
    if groups < 2 or depth % groups:
        raise ModelError(
            f"`maxout_layer` divides the channels into groups: `groups` must be above 1 and divide {depth}. "
            f"Received: {groups!r}."
        )
    return define(
        "maxout_layer",
        LayerType.MAXOUT,
        named(name, "maxout_layer"),
        [raw.Input(layer.name, maxout=raw.MaxOut(channels=depth, groups=groups))],
        [layer],
        depth=depth // groups,
        layer_attr=layer_attr,
    )


def block_expand_layer(
    input: LayerOutput,
    block_x: int = 0,
    block_y: int = 0,
    stride_x: int = 0,
    stride_y: int = 0,
    padding_x: int = 0,
    padding_y: int = 0,
    num_channels: int | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the blocks of an image as the steps of a sequence, row by row."""
    layer = a_layer(input, "block_expand_layer")
    blocks = raw.BlockExpand(
        channels=channels(layer, num_channels, "block_expand_layer"),
        block_x=block_x,
        block_y=block_y,
        stride_x=stride_x,
        stride_y=stride_y,
        padding_x=padding_x,
        padding_y=padding_y,
    )
    made = [raw.Input(layer.name, block_expand=blocks)]
    own = named(name, "block_expand_layer")
    return define("block_expand_layer", LayerType.BLOCK_EXPAND, own, made, [layer], layer_attr=layer_attr)


def bilinear_interp_layer(
    input: LayerOutput,
    out_size_x: int | None = None,
    out_size_y: int | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns the image in another size, by bilinear interpolation."""
    layer = a_layer(input, "bilinear_interp_layer")
    depth = channels(layer, None, "bilinear_interp_layer")
    made = raw.BilinearInterp(out_size_x=out_size_x, out_size_y=out_size_y, channels=depth)
    return define(
        "bilinear_interp_layer",
        LayerType.BILINEAR_INTERP_LAYER,
        named(name, "bilinear_interp_layer"),
        [raw.Input(layer.name, bilinear_interp=made)],
        [layer],
        depth=depth,
        layer_attr=layer_attr,
    )


def pad_layer(
    input: LayerOutput,
    pad_c: Sequence[int] | None = None,
    pad_h: Sequence[int] | None = None,
    pad_w: Sequence[int] | None = None,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Zeros before and after the channels, the rows and the columns of an image: a pair for each."""
    layer = a_layer(input, "pad_layer")
    pads = {}
    for key, value in {"pad_c": pad_c, "pad_h": pad_h, "pad_w": pad_w}.items():
        if value is not None and (not isinstance(value, Sequence) or len(value) != 2):
            raise ModelError(
                f"`{key}` of `pad_layer` must be a pair: how many before, how many after. Received: {value!r}."
            )
        pads[key] = list(value or (0, 0))
    depth = channels(layer, None, "pad_layer")
    return define(
        "pad_layer",
        LayerType.PAD_LAYER,
        named(name, "pad"),
        [raw.Input(layer.name, pad=raw.Pad(channels=depth, **pads))],
        [layer],
        depth=depth + sum(pads["pad_c"]),
        layer_attr=layer_attr,
    )


def rotate_layer(
    input: LayerOutput,
    height: int,
    width: int,
    name: str | None = None,
    layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns each channel of an image turned by 90 degrees clockwise; `height` and `width` are the input's."""
    layer = a_layer(input, "rotate_layer")
    return define(
        "rotate_layer",
        LayerType.ROTATE_LAYER,
        named(name, "rotate_layer"),
        [layer.name],
        [layer],
        depth=layer.num_filters,
        layer_attr=layer_attr,
        height=height,
        width=width,
    )


def _conv_type(told: str | None, *, trans: bool) -> str:
    if told is None:
        return LayerType.CONVTRANS_LAYER if trans else LayerType.CONV_LAYER
    known = ("exconvt", "cudnn_convt") if trans else ("exconv", "cudnn_conv")
    if told not in known:
        raise ModelError(f"With trans={trans!r}, {one_of('layer_type', told, known)}")
    return told


def _image_pooling(pool_type: BasePoolingType | None, function: str) -> str:
    kind = MaxPooling() if pool_type is None else pool_type
    if isinstance(kind, CudnnMaxPooling | CudnnAvgPooling):
        return kind.name
    if isinstance(kind, MaxPooling) and not kind.output_max_index:
        return "max-projection"
    if isinstance(kind, AvgPooling) and kind.strategy == AvgPooling.STRATEGY_AVG:
        return "avg-projection"
    raise ModelError(
        f"`{function}` pools an image by MaxPooling(), AvgPooling(), CudnnMaxPooling() or CudnnAvgPooling(). "
        f"Received: {kind!r}. Sums and indices are for pooling_layer, over sequences."
    )
