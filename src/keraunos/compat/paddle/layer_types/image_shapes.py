"""Layers that give an image another shape, or cut it up. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.geometry import conv_side
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, layer_type


@layer_type("spp", "SpatialPyramidPoolLayer", reads="spp")
def spp(draft: Draft) -> None:
    """Pooling into 1, 4, 16 … cells, one grid after the other."""
    told = draft.setting(
        0, "spp", "Input(…, spp=SpatialPyramidPool(pool_type='max-projection', pyramid_height=…, channels=…))"
    )
    draft.choice("pool_type", told.pool_type, ("max-projection", "avg-projection"))
    channels = draft.whole("channels", told.channels, least=1)
    levels = draft.whole("pyramid_height", told.pyramid_height, least=1)
    height, width = draft.image_sides(0, channels)
    draft.check(
        2 ** (levels - 1) <= min(height, width),
        "the finest grid must not have more cells a side than the image has pixels",
        f"pyramid_height={levels} on an image of {height} by {width}",
    )
    draft.settings[0]["spp"] = {
        "pool_type": told.pool_type,
        "pyramid_height": levels,
        "channels": channels,
        "img_size": width,
        "img_size_y": height,
    }
    cells = (4**levels - 1) // 3
    draft.set_size(channels * cells, height=1, width=cells)


@layer_type("pad", "PadLayer", reads="pad")
def pad(draft: Draft) -> None:
    """Zeros around an image, and before and behind its channels."""
    told = draft.setting(0, "pad", "Input(…, pad=Pad(channels=…, pad_c=[…], pad_h=[…], pad_w=[…]))")
    channels = draft.whole("channels", told.channels, least=1)
    height, width = draft.image_sides(0, channels)
    settings: dict[str, Any] = {"channels": channels, "img_size": width, "img_size_y": height}
    for name in ("pad_c", "pad_h", "pad_w"):
        given = getattr(told, name)
        draft.check(
            isinstance(given, list | tuple) and len(given) == 2,
            f"`{name}` is how many before and how many behind",
            repr(given),
        )
        settings[name] = [draft.whole(name, each) for each in given]
    draft.settings[0]["pad"] = settings
    depth, high, wide = (
        side + sum(settings[name]) for side, name in ((channels, "pad_c"), (height, "pad_h"), (width, "pad_w"))
    )
    draft.set_size(depth * high * wide, height=high, width=wide)


@layer_type("maxout", "MaxOutLayer", reads="maxout")
def maxout(draft: Draft) -> None:
    """The largest of each `groups` consecutive channels."""
    told = draft.setting(0, "maxout", "Input(…, maxout=MaxOut(channels=…, groups=…))")
    channels = draft.whole("channels", told.channels, least=1)
    groups = draft.whole("groups", told.groups, least=1)
    draft.check(channels % groups == 0, "`groups` must divide the channels", f"groups={groups}, {channels} channels")
    height, width = draft.image_sides(0, channels)
    draft.settings[0]["maxout"] = {"channels": channels, "groups": groups, "img_size_x": width, "img_size_y": height}
    draft.set_size(channels // groups * height * width, height=height, width=width)


@layer_type("bilinear_interp", "BilinearInterpLayer", reads="bilinear_interp")
def bilinear_interp(draft: Draft) -> None:
    """An image of another size, its pixels between those of the input."""
    told = draft.setting(
        0, "bilinear_interp", "Input(…, bilinear_interp=BilinearInterp(out_size_x=…, out_size_y=…, channels=…))"
    )
    channels = draft.whole("channels", told.channels, least=1)
    wide = draft.whole("out_size_x", told.out_size_x, least=1)
    high = draft.whole("out_size_y", told.out_size_y, least=1)
    height, width = draft.image_sides(0, channels)
    draft.settings[0]["bilinear_interp"] = {
        "num_channels": channels,
        "img_size_x": width,
        "img_size_y": height,
        "out_size_x": wide,
        "out_size_y": high,
    }
    draft.set_size(channels * high * wide, height=high, width=wide)


@layer_type(
    "rotate",
    "RotateLayer",
    attributes={"height": REQUIRED, "width": REQUIRED},
    positional=("name", "inputs", "height", "width"),
)
def rotate(draft: Draft) -> None:
    """Each channel of an image turned by a quarter; `height` and `width` are the input's."""
    height = draft.count("height", least=1)
    width = draft.count("width", least=1)
    size = draft.input_size(0)
    draft.check(
        size % (height * width) == 0,
        "the size of its input must be a multiple of height times width",
        f"size {size}, height={height}, width={width}",
    )
    draft.set_size(size, height=width, width=height)


@layer_type("blockexpand", "BlockExpandLayer", reads="block_expand")
def blockexpand(draft: Draft) -> None:
    """Patches of an image as the steps of a sequence, row by row."""
    told = draft.setting(
        0,
        "block_expand",
        "Input(…, block_expand=BlockExpand(channels=…, block_x=…, block_y=…, stride_x=…, stride_y=…))",
    )
    channels = draft.whole("channels", told.channels, least=1)
    height, width = _expanded_sides(draft, told, channels)
    settings: dict[str, Any] = {"channels": channels, "img_size_x": width, "img_size_y": height}
    for axis, side in (("x", width), ("y", height)):
        for name, least in (("block", 1), ("stride", 1), ("padding", 0)):
            settings[f"{name}_{axis}"] = draft.whole(f"{name}_{axis}", getattr(told, f"{name}_{axis}"), least)
        block, padding, stride = (settings[f"{name}_{axis}"] for name in ("block", "padding", "stride"))
        settings[f"output_{axis}"] = conv_side(side, block, padding, stride, floor=False)
        draft.check(
            settings[f"output_{axis}"] >= 1,
            "a block must not be larger than the padded image",
            f"side {side}, block_{axis}={block}, padding_{axis}={padding}",
        )
    draft.settings[0]["block_expand"] = settings
    draft.set_size(channels * settings["block_x"] * settings["block_y"])


def _expanded_sides(draft: Draft, told: Any, channels: int) -> tuple[int, int]:
    if not told.img_size_x and not told.img_size_y:
        return draft.image_sides(0, channels)
    width = draft.whole("img_size_x", told.img_size_x, least=1)
    height = draft.whole("img_size_y", told.img_size_y, least=1)
    draft.check(
        channels * height * width == draft.input_size(0),
        "channels, `img_size_x` and `img_size_y` must make the size of the input",
        f"{channels} channels, img_size_x={width}, img_size_y={height}, an input of {draft.input_size(0)}",
    )
    return height, width
