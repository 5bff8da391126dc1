"""Networks of images: convolution and pooling in groups, VGG. On the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keraunos.compat.paddle.trainer_config_helpers.activations import (
    BaseActivation,
    LinearActivation,
    ReluActivation,
    SoftmaxActivation,
)
from keraunos.compat.paddle.trainer_config_helpers.attrs import ExtraAttr, ExtraLayerAttribute, ParameterAttribute
from keraunos.compat.paddle.trainer_config_helpers.defining import named
from keraunos.compat.paddle.trainer_config_helpers.dense_layers import fc_layer
from keraunos.compat.paddle.trainer_config_helpers.image_layers import batch_norm_layer, img_conv_layer, img_pool_layer
from keraunos.compat.paddle.trainer_config_helpers.layer_output import LayerOutput
from keraunos.compat.paddle.trainer_config_helpers.poolings import BasePoolingType, MaxPooling
from keraunos.compat.paddle.trainer_config_helpers.vector_layers import dropout_layer
from keraunos.errors import ModelError

__all__ = ["img_conv_bn_pool", "img_conv_group", "simple_img_conv_pool", "small_vgg", "vgg_16_network"]

Bias = ParameterAttribute | bool | None


def simple_img_conv_pool(
    input: LayerOutput,
    filter_size: int,
    num_filters: int,
    pool_size: int,
    name: str | None = None,
    pool_type: BasePoolingType | None = None,
    act: BaseActivation | None = None,
    groups: int = 1,
    conv_stride: int = 1,
    conv_padding: int = 0,
    bias_attr: Bias = None,
    num_channel: int | None = None,
    param_attr: ParameterAttribute | None = None,
    shared_bias: bool = True,
    conv_layer_attr: ExtraLayerAttribute | None = None,
    pool_stride: int = 1,
    pool_padding: int = 0,
    pool_layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns a convolution and a pooling; arguments are those of `img_conv_layer` and `img_pool_layer`."""
    own = named(name, "conv_pool")
    conv = img_conv_layer(
        input,
        filter_size,
        num_filters,
        name=f"{own}_conv",
        num_channels=num_channel,
        act=act,
        groups=groups,
        stride=conv_stride,
        padding=conv_padding,
        bias_attr=bias_attr,
        param_attr=param_attr,
        shared_biases=shared_bias,
        layer_attr=conv_layer_attr,
    )
    return img_pool_layer(
        conv,
        pool_size,
        name=f"{own}_pool",
        pool_type=pool_type,
        stride=pool_stride,
        padding=pool_padding,
        layer_attr=pool_layer_attr,
    )


def img_conv_bn_pool(
    input: LayerOutput,
    filter_size: int,
    num_filters: int,
    pool_size: int,
    name: str | None = None,
    pool_type: BasePoolingType | None = None,
    act: BaseActivation | None = None,
    groups: int = 1,
    conv_stride: int = 1,
    conv_padding: int = 0,
    conv_bias_attr: Bias = None,
    num_channel: int | None = None,
    conv_param_attr: ParameterAttribute | None = None,
    shared_bias: bool = True,
    conv_layer_attr: ExtraLayerAttribute | None = None,
    bn_param_attr: ParameterAttribute | None = None,
    bn_bias_attr: Bias = None,
    bn_layer_attr: ExtraLayerAttribute | None = None,
    pool_stride: int = 1,
    pool_padding: int = 0,
    pool_layer_attr: ExtraLayerAttribute | None = None,
) -> LayerOutput:
    """Returns a convolution, a batch normalization with the activation, and a pooling.

    Arguments are those of the three.
    """
    own = named(name, "conv_bn_pool")
    conv = img_conv_layer(
        input,
        filter_size,
        num_filters,
        name=f"{own}_conv",
        num_channels=num_channel,
        act=LinearActivation(),
        groups=groups,
        stride=conv_stride,
        padding=conv_padding,
        bias_attr=conv_bias_attr,
        param_attr=conv_param_attr,
        shared_biases=shared_bias,
        layer_attr=conv_layer_attr,
    )
    norm = batch_norm_layer(
        conv,
        act=act,
        name=f"{own}_bn",
        bias_attr=bn_bias_attr,
        param_attr=bn_param_attr,
        layer_attr=bn_layer_attr,
    )
    return img_pool_layer(
        norm,
        pool_size,
        name=f"{own}_pool",
        pool_type=pool_type,
        stride=pool_stride,
        padding=pool_padding,
        layer_attr=pool_layer_attr,
    )


def img_conv_group(
    input: LayerOutput,
    conv_num_filter: Sequence[int],
    pool_size: int,
    num_channels: int | None = None,
    conv_padding: int | Sequence[int] = 1,
    conv_filter_size: int | Sequence[int] = 3,
    conv_act: BaseActivation | Sequence[BaseActivation] | None = None,
    conv_with_batchnorm: bool | Sequence[bool] = False,
    conv_batchnorm_drop_rate: float | Sequence[float] = 0,
    pool_stride: int = 1,
    pool_type: BasePoolingType | None = None,
    param_attr: ParameterAttribute | None = None,
) -> LayerOutput:
    """Convolutions one after another, then one pooling.

    Args:
        input: an image.
        conv_num_filter: the filters of each convolution.
        pool_size: of the pooling.
        num_channels: of the input, if its layer does not declare it.
        conv_padding: of all convolutions, or of each; so are the following.
        conv_filter_size: the side of the filters.
        conv_act: relu by default.
        conv_with_batchnorm: whether a batch normalization stands between the convolution and its activation.
        conv_batchnorm_drop_rate: what share is dropped after it.
        pool_stride: of the pooling.
        pool_type: `MaxPooling()` by default.
        param_attr: of the filters of every convolution.
    """
    count = len(conv_num_filter)
    act = ReluActivation() if conv_act is None else conv_act
    paddings = _for_each("conv_padding", conv_padding, count)
    sides = _for_each("conv_filter_size", conv_filter_size, count)
    acts = _for_each("conv_act", act, count)
    normed = _for_each("conv_with_batchnorm", conv_with_batchnorm, count)
    dropped = _for_each("conv_batchnorm_drop_rate", conv_batchnorm_drop_rate, count)
    layer = input
    for at, filters in enumerate(conv_num_filter):
        layer = img_conv_layer(
            layer,
            sides[at],
            filters,
            num_channels=num_channels if at == 0 else None,
            act=LinearActivation() if normed[at] else acts[at],
            padding=paddings[at],
            param_attr=param_attr,
        )
        if normed[at]:
            extra = ExtraAttr(drop_rate=dropped[at]) if dropped[at] > 1e-5 else None
            layer = batch_norm_layer(layer, act=acts[at], layer_attr=extra)
    return img_pool_layer(layer, pool_size, stride=pool_stride, pool_type=pool_type)


def small_vgg(input_image: LayerOutput, num_channels: int, num_classes: int) -> LayerOutput:
    """VGG with batch normalization for small images, such as those of 32 by 32 pixels."""
    blocks = ((64, (0.3, 0.0)), (128, (0.4, 0.0)), (256, (0.4, 0.4, 0.0)), (512, (0.4, 0.4, 0.0)))
    layer = input_image
    for at, (filters, dropped) in enumerate(blocks):
        layer = img_conv_group(
            layer,
            [filters] * len(dropped),
            pool_size=2,
            num_channels=num_channels if at == 0 else None,
            conv_with_batchnorm=True,
            conv_batchnorm_drop_rate=dropped,
            pool_stride=2,
            pool_type=MaxPooling(),
        )
    layer = img_pool_layer(layer, pool_size=2, stride=2, pool_type=MaxPooling())
    layer = dropout_layer(layer, dropout_rate=0.5)
    layer = fc_layer(layer, 512, act=LinearActivation(), layer_attr=ExtraAttr(drop_rate=0.5))
    layer = batch_norm_layer(layer, act=ReluActivation())
    return fc_layer(layer, num_classes, act=SoftmaxActivation())


def vgg_16_network(input_image: LayerOutput, num_channels: int, num_classes: int = 1000) -> LayerOutput:
    """VGG with 13 convolutions and 3 fully connected layers."""
    layer = input_image
    for at, (filters, times) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        layer = img_conv_group(
            layer,
            [filters] * times,
            pool_size=2,
            num_channels=num_channels if at == 0 else None,
            pool_stride=2,
            pool_type=MaxPooling(),
        )
    for _ in range(2):
        layer = fc_layer(layer, 4096, act=ReluActivation(), layer_attr=ExtraAttr(drop_rate=0.5))
    return fc_layer(layer, num_classes, act=SoftmaxActivation())


def _for_each(argument: str, value: Any, count: int) -> list[Any]:
    if not isinstance(value, Sequence):
        return [value] * count
    if len(value) != count:
        raise ModelError(
            f"`{argument}` of `img_conv_group` must be one value, or one for each of {count} convolutions. "
            f"Received: {value!r}."
        )
    return list(value)
