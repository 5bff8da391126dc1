"""Layers of images: convolution, pooling, normalization … Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from keraunos.compat.paddle.language_values import Conv
from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.geometry import conv_side, pool_side, trans_conv_side
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, layer_type

logger = logging.getLogger(__name__)

POOL_TYPES = ("max-projection", "avg-projection", "cudnn-max-pool", "cudnn-avg-pool")
_CONV = "Input(…, conv=Conv(filter_size=…, channels=…, padding=…, stride=…, groups=…))"
_CONV_ABOUT: dict[str, Any] = {
    "inputs": (1, None),
    "bias": True,
    "reads": "conv",
    "attributes": {"num_filters": REQUIRED, "shared_biases": False, "partial_sum": 0},
    "positional": ("name", "inputs", "bias", "num_filters", "shared_biases"),
}


@layer_type("conv", "ConvLayer", **_CONV_ABOUT)
def conv(draft: Draft) -> None:
    """A convolution of the kind that Paddle would take for its device."""
    draft.type = "cudnn_conv" if draft.state.flag("use_gpu") else "exconv"
    exconv(draft)


@layer_type("cudnn_conv", "ConvCudnnLayer", **_CONV_ABOUT)
@layer_type("exconv", "ConvExpandLayer", **_CONV_ABOUT)
def exconv(draft: Draft) -> None:
    """Filters over each input, summed."""
    filters = _filters(draft)
    for at in range(len(draft.told)):
        settings = conv_settings(draft, at, draft.setting(at, "conv", _CONV), filters, transposed=False)
        draft.settings[at]["conv"] = settings
        height, width = settings["output_y"], settings["output_x"]
        draft.set_size(filters * height * width, height=height, width=width)
        draft.weight(at, conv_weights(settings, filters))
    _conv_bias(draft, filters)


@layer_type("convt", "ConvTransLayer", **_CONV_ABOUT)
def convt(draft: Draft) -> None:
    """A transposed convolution of the kind that Paddle would take for its device."""
    draft.type = "cudnn_convt" if draft.state.flag("use_gpu") else "exconvt"
    exconvt(draft)


@layer_type("cudnn_convt", "ConvTransCudnnLayer", **_CONV_ABOUT)
@layer_type("exconvt", "ConvTransExpandLayer", **_CONV_ABOUT)
def exconvt(draft: Draft) -> None:
    """Filters spread over each input, summed."""
    filters = _filters(draft)
    for at in range(len(draft.told)):
        settings = conv_settings(draft, at, draft.setting(at, "conv", _CONV), filters, transposed=True)
        draft.settings[at]["conv"] = settings
        height, width = settings["img_size_y"], settings["img_size"]
        draft.set_size(filters * height * width, height=height, width=width)
        draft.weight(at, trans_conv_weights(settings))
    _conv_bias(draft, filters)


@layer_type(
    "pool", "PoolLayer", reads="pool", attributes={"ceil_mode": True}, positional=("name", "inputs", "ceil_mode")
)
def pool(draft: Draft) -> None:
    """The largest or the mean of each window; one that stands over the edge counts, unless `ceil_mode` is off."""
    told = draft.setting(0, "pool", "Input(…, pool=Pool(pool_type='max-projection', channels=…, size_x=…, stride=…))")
    draft.choice("pool_type", told.pool_type, POOL_TYPES)
    channels = draft.whole("channels", told.channels, least=1)
    if told.img_width:
        width = draft.whole("img_width", told.img_width, least=1)
        draft.check(
            draft.input_size(0) % (channels * width) == 0,
            "`img_width` must divide the image",
            f"img_width={width}, size {draft.input_size(0)}, {channels} channels",
        )
        height = draft.input_size(0) // channels // width
    else:
        height, width = draft.image_sides(0, channels)
    start = draft.whole("start", told.start or 0)
    padding = draft.whole("padding", told.padding or 0)
    settings: dict[str, Any] = {
        "pool_type": told.pool_type,
        "channels": channels,
        "size_x": draft.whole("size_x", told.size_x, least=1),
        "size_y": draft.whole("size_y", told.size_x if told.size_y is None else told.size_y, least=1),
        "start": start,
        "stride": draft.whole("stride", told.stride, least=1),
        "stride_y": draft.whole("stride_y", told.stride if told.stride_y is None else told.stride_y, least=1),
        "padding": padding,
        "padding_y": draft.whole("padding_y", padding if told.padding_y is None else told.padding_y),
        "img_size": width,
        "img_size_y": height,
    }
    draft.check(
        not (start and (padding or settings["padding_y"])),
        "a pooling has a `start` or a `padding`, not both",
        f"start={start}, padding={padding}",
        "Leave one of them out",
    )
    settings["output_x"] = _pooled_side(draft, settings, "")
    settings["output_y"] = _pooled_side(draft, settings, "_y")
    draft.settings[0]["pool"] = settings
    height, width = settings["output_y"], settings["output_x"]
    draft.set_size(channels * height * width, height=height, width=width)


@layer_type("norm", "NormLayer", reads="norm", keeps_image=True)
def norm(draft: Draft) -> None:
    """Responses divided by those of channels beside them, or by all channels of their place."""
    told = draft.setting(
        0, "norm", "Input(…, norm=Norm(norm_type='cmrnorm-projection', channels=…, size=…, scale=…, pow=…))"
    )
    draft.check(
        told.norm_type != "rnorm",
        "there is no open implementation of 'rnorm'",
        "norm_type='rnorm'",
        "The nearest is 'cmrnorm-projection'",
    )
    draft.choice("norm_type", told.norm_type, ("cmrnorm-projection", "cross-channel-norm"))
    channels = draft.whole("channels", told.channels, least=1)
    size = draft.whole("size", told.size, least=1)
    height, width = draft.image_sides(0, channels)
    local = told.norm_type == "cmrnorm-projection"
    draft.settings[0]["norm"] = {
        "norm_type": told.norm_type,
        "channels": channels,
        "size": size,
        "scale": told.scale / (size if local else size**2),
        "pow": told.pow,
        "blocked": bool(told.blocked),
        "img_size": width,
        "img_size_y": height,
        "output_x": width,
        "output_y": height,
    }
    draft.set_size(draft.input_size(0), height=height, width=width)
    if not local:
        draft.weight(0, channels, (channels, 1))


@layer_type(
    "batch_norm",
    "BatchNormLayer",
    bias=True,
    active_type="linear",
    reads="image",
    attributes={"use_global_stats": True, "moving_average_fraction": 0.9, "batch_norm_type": ""},
)
def batch_norm(draft: Draft) -> None:
    """Each channel normalized over the batch; the moving mean and variance are parameters that no gradient moves."""
    told = draft.setting(0, "image", "Input(…, image=Image(channels=…))")
    channels = draft.whole("channels", told.channels, least=1)
    height, width = draft.image_sides(0, channels)
    fraction = draft.attributes["moving_average_fraction"]
    draft.check(0 <= fraction <= 1, "`moving_average_fraction` must be between 0 and 1", repr(fraction))
    draft.settings[0]["image"] = {"channels": channels, "img_size": width, "img_size_y": height}
    draft.set_size(draft.input_size(0), height=height, width=width)
    draft.weight(0, channels)
    for at in (draft.add_input(draft.feeding[0].name), draft.add_input(draft.feeding[0].name)):
        draft.weight(
            at, channels, (1, channels), initial_mean=0.0, initial_std=0.0, initial_smart=False, is_static=True
        )
    draft.add_bias(channels)


def conv_settings(draft: Draft, at: int, told: Conv, filters: int, *, transposed: bool) -> Mapping[str, Any]:
    """Returns a convolution of one input, worked out.

    Of a transposed one the output is what the settings call the image.
    """
    for needed in ("padding", "stride", "groups"):
        draft.check(
            getattr(told, needed) is not None, f"a convolution must say its `{needed}`", "nothing", f"Write {_CONV}"
        )
    draft.check(
        not told.output_x or told.output_x < 0, "`output_x` is worked out", f"output_x={told.output_x}", "Leave it out"
    )
    channels = draft.whole("channels", told.channels, least=1)
    groups = draft.whole("groups", told.groups, least=1)
    draft.check(
        channels % groups == 0 and filters % groups == 0,
        "`groups` must divide the channels and the filters",
        f"groups={groups}, {channels} channels, num_filters={filters}",
    )
    settings: dict[str, Any] = {"channels": channels, "groups": groups, "caffe_mode": bool(told.caffe_mode)}
    for name, least in (("filter_size", 1), ("padding", 0), ("stride", 1)):
        on_x = getattr(told, name)
        on_y = getattr(told, f"{name}_y")
        settings[name] = draft.whole(name, on_x, least)
        settings[f"{name}_y"] = draft.whole(f"{name}_y", on_x if on_y is None else on_y, least)
    settings["filter_channels"] = (filters if transposed else channels) // groups
    height, width = draft.image_sides(at, channels)
    known, found = ("output_", "img_size") if transposed else ("img_size", "output_")
    names = {"img_size": ("img_size", "img_size_y"), "output_": ("output_x", "output_y")}
    settings[names[known][0]], settings[names[known][1]] = width, height
    rule = trans_conv_side if transposed else conv_side
    for name, suffix, side in ((names[found][0], "", width), (names[found][1], "_y", height)):
        window = (settings[f"filter_size{suffix}"], settings[f"padding{suffix}"], settings[f"stride{suffix}"])
        settings[name] = rule(side, *window, floor=settings["caffe_mode"])
        draft.check(
            settings[name] >= 1,
            "the filter must not be larger than the padded image",
            f"side {side}, filter_size={window[0]}, padding={window[1]}, stride={window[2]}",
        )
    return settings


def conv_weights(settings: Mapping[str, Any], filters: int) -> int:
    """Returns how many weights the filters of a convolution have."""
    area: int = settings["filter_size"] * settings["filter_size_y"]
    return filters * int(settings["filter_channels"]) * area


def trans_conv_weights(settings: Mapping[str, Any]) -> int:
    """Returns how many weights the filters of a transposed convolution have."""
    area: int = settings["filter_size"] * settings["filter_size_y"]
    return int(settings["channels"]) * int(settings["filter_channels"]) * area


def _filters(draft: Draft) -> int:
    if draft.attributes.pop("partial_sum"):
        logger.info(
            "Layer %r: `partial_sum` of a convolution changes nothing but memory in Paddle, and nothing here.",
            draft.name,
        )
    return draft.count("num_filters", least=1)


def _conv_bias(draft: Draft, filters: int) -> None:
    count = filters if draft.attributes["shared_biases"] else draft.size
    draft.add_bias(count, (count, 1))


def _pooled_side(draft: Draft, settings: Mapping[str, Any], axis: str) -> int:
    side, window = settings[f"img_size{axis}"], settings["size_y" if axis else "size_x"]
    stride, padding, start = settings[f"stride{axis}"], settings[f"padding{axis}"], settings["start"]
    floor = not draft.attributes["ceil_mode"]
    if start:
        count = pool_side(side, window, start, stride, floor=floor)
    else:
        count = conv_side(side, window, padding, stride, floor=floor)
    last = start - padding + (count - 1) * stride
    draft.check(
        count >= 1 and padding < window and last < side,
        "every window of a pooling must meet the image",
        f"side {side}, window {window}, stride {stride}, padding {padding}, start {start}, {count} windows",
        "Make the window larger than the padding, or leave out the last one with ceil_mode=False",
    )
    return count
