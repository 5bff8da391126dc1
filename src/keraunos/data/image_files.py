"""One encoded image to the bytes of Spark's image struct. Runs on executors.

Pillow decodes JPEG, PNG and its other formats. Every decoded image has one or three channels of 8 bits, is upright, and
has the requested size, if any.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from keraunos.errors import DataError, one_of

CROPS = ("center", "random", None)
# Pillow's own limit for a warning. A file of a few kilobytes can claim a thousand times as many pixels.
MAX_PIXELS = 89_478_485
CV_8UC1, CV_8UC3 = 0, 16


@dataclass(frozen=True)
class Framing:
    """How an image is converted: its size, its crop and its channels.

    Attributes:
        size: the height and the width of the result; `None` keeps the size of each image.
        crop: `"center"` or `"random"`: the shorter side becomes `resize`, and a square of `size` is cut out at
            the center, or at a position that depends on the file's path and `seed` only; `None` squeezes the whole
            image into the square.
        resize: the length that the shorter side gets before it is cropped; `None` means `size`.
        channels: 3 for colour, 1 for grey.
        seed: of random crops.
        max_pixels: the largest image that is decoded, as its width times its height.
    """

    size: int | None = None
    crop: str | None = "center"
    resize: int | None = None
    channels: int = 3
    seed: int = 0
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        _check_whole("size", self.size)
        _check_whole("resize", self.resize)
        _check_whole("max_pixels", self.max_pixels)
        if self.max_pixels is None:
            raise DataError("`max_pixels` must be a whole number of at least 1, in pixels. Received: None.")
        if self.crop not in CROPS:
            raise DataError(one_of("crop", self.crop, ("center", "random")) + " None squeezes the image instead.")
        if self.channels not in (1, 3) or isinstance(self.channels, bool):
            raise DataError(f"`channels` must be 3, for colour, or 1, for grey. Received: {self.channels!r}.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise DataError(f"`seed` must be a whole number. Received: {self.seed!r}.")
        if self.resize is not None and (self.size is None or self.crop is None or self.resize < self.size):
            raise DataError(
                "`resize` must be the length of the shorter side before a crop, at least `size`. Received: "
                f"{self.resize!r} with size={self.size!r} and crop={self.crop!r}."
            )


@dataclass(frozen=True)
class Decoded:
    """An image: rows of pixels from the top, the channels of a pixel beside each other in the order BGR."""

    height: int
    width: int
    channels: int
    data: bytes

    @property
    def mode(self) -> int:
        """OpenCV's number for the type of a pixel."""
        return CV_8UC3 if self.channels == 3 else CV_8UC1


def decode(content: bytes, path: str, framing: Framing) -> Decoded:
    """Returns the image in a file. If Pillow cannot read it, raises the exception of Pillow's decoder."""
    from PIL import Image, ImageOps

    mode = "RGB" if framing.channels == 3 else "L"
    with own_limit(), Image.open(io.BytesIO(content)) as opened:
        pixels = opened.width * opened.height
        if pixels > framing.max_pixels:
            raise ValueError(
                f"the image has {opened.width} x {opened.height} pixels, and at most max_pixels={framing.max_pixels} "
                "are decoded"
            )
        if framing.size is not None:
            # A JPEG can be decoded at 1/2, 1/4 or 1/8 of its size, which saves most of the time.
            side = framing.resize or framing.size
            opened.draft(mode, (side, side))
        # In place, so that an image that is upright already is not copied.
        ImageOps.exif_transpose(opened, in_place=True)
        image = upper_eight_bits(opened)
        if image.mode != mode:
            image = image.convert(mode)
        if framing.size is not None:
            image = _framed(image, path, framing)
        data = image.tobytes("raw", "BGR") if framing.channels == 3 else image.tobytes()
        return Decoded(image.height, image.width, framing.channels, data)


@contextmanager
def own_limit() -> Iterator[None]:
    """Checks an image against our limit. Pillow's own limit applies to the whole process, and at first only warns."""
    from PIL import Image

    before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = before


def _framed(image: Any, path: str, framing: Framing) -> Any:
    from PIL import Image

    assert framing.size is not None
    box = _window(image.width, image.height, path, framing)
    if image.size == (framing.size, framing.size) and box == (0, 0, framing.size, framing.size):
        return image
    # Resized and cropped at once: what the crop leaves out is not computed.
    return image.resize((framing.size, framing.size), Image.Resampling.BILINEAR, box=box)


def _window(width: int, height: int, path: str, framing: Framing) -> tuple[float, float, float, float]:
    """Returns the part of the image that remains, as left, top, right and bottom."""
    if framing.crop is None or framing.size is None:
        return (0, 0, width, height)
    side = min(width, height) * framing.size / (framing.resize or framing.size)
    across, down = (0.5, 0.5) if framing.crop == "center" else _place(path, framing.seed)
    left, top = (width - side) * across, (height - side) * down
    return (left, top, left + side, top + side)


def _place(path: str, seed: int) -> tuple[float, float]:
    """Two fractions from 0 to 1 that are always the same for a path, so that a retried task cuts the same crop."""
    digest = hashlib.blake2b(f"{seed}:{path}".encode(), digest_size=8).digest()
    first, second = np.frombuffer(digest, dtype="<u4") / 0xFFFFFFFF
    return float(first), float(second)


def upper_eight_bits(image: Any) -> Any:
    """Grey values of 16 bits as their upper 8, which Pillow would cut off at 255 instead."""
    if not image.mode.startswith("I"):
        if image.mode == "F":
            raise ValueError("the image has floating-point pixels, whose range is not known")
        return image
    from PIL import Image

    return Image.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))


def _check_whole(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise DataError(f"`{name}` must be a whole number of at least 1, in pixels, or None. Received: {value!r}.")
