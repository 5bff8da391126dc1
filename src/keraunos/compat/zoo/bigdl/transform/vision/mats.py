"""OpenCV's operations on pixels, in numpy. Runs on executors.

A mat is an array of height, width and channels (BGR), of 8 bits or of floats; 8 bits are rounded and cut to 0..255 as
OpenCV does. OpenCV rounds inside of some operations on 8 bits too: results may be one level apart.
"""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.data.image_files import MAX_PIXELS, own_limit, upper_eight_bits
from keraunos.errors import DataError

Mat = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]

NEAREST, LINEAR, CUBIC, AREA, LANCZOS = 0, 1, 2, 3, 4
# Java's smooth scaling, which is not a mode of OpenCV: means over areas, however the size changes.
SMOOTH = 5
MODES = (LINEAR, CUBIC, AREA, NEAREST, LANCZOS)
INF, L1, L2, MINMAX = 1, 2, 4, 32


def decoded(content: bytes, codec: int) -> Mat:
    """Returns the image in a file: of three channels for a `codec` above 0, one for 0, and for -1 as many as it has.

    Except for -1 the image is turned upright as its EXIF data says.
    """
    from PIL import Image, ImageOps

    with own_limit(), Image.open(io.BytesIO(content)) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            raise ValueError(f"the image has {opened.width} x {opened.height} pixels, more than {MAX_PIXELS}")
        if codec >= 0:
            ImageOps.exif_transpose(opened, in_place=True)
        image = upper_eight_bits(opened)
        mode = _mode(image, codec)
        pixels: Mat = np.asarray(image if image.mode == mode else image.convert(mode))
    if pixels.ndim == 2:
        return pixels.reshape(*pixels.shape, 1)
    return np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][: pixels.shape[2]]])


def like(mat: Mat, values: npt.NDArray[Any]) -> Mat:
    """Values in a mat's type: rounded and cut to 0..255 for 8 bits."""
    if mat.dtype == np.uint8:
        rounded: Mat = np.clip(np.rint(values), 0, 255).astype(np.uint8)
        return rounded
    return values.astype(np.float32)


def scaled(mat: Mat, factor: float, shift: float) -> Mat:
    """Returns each value times a factor, plus a shift."""
    return like(mat, mat.astype(np.float32) * factor + shift)


def resized(mat: Mat, height: int, width: int, mode: int = LINEAR) -> Mat:
    """Returns the mat in another size, by OpenCV's formula for the mode; it does not smooth what it makes smaller."""
    if height < 1 or width < 1:
        raise DataError(f"An image must be resized to at least one pixel. Received: {height} x {width}.")
    if mat.shape[:2] == (height, width):
        return mat
    if mode == AREA and height <= mat.shape[0] and width <= mat.shape[1]:
        mode = SMOOTH
    rows = _along(mat, 0, height, mode)
    return like(mat, _along(rows, 1, width, mode))


def cropped(mat: Mat, x1: float, y1: float, x2: float, y2: float, *, clip: bool) -> Mat:
    """Returns a part of the mat."""
    height, width = mat.shape[:2]
    if clip:
        x1, x2 = (max(min(each, float(width)), 0.0) for each in (x1, x2))
        y1, y2 = (max(min(each, float(height)), 0.0) for each in (y1, y2))
    left, top, across, down = int(x1), int(y1), int(x2 - x1), int(y2 - y1)
    if left < 0 or top < 0 or across < 1 or down < 1 or left + across > width or top + down > height:
        raise DataError(
            f"A crop must lie in the image, which has {height} rows and {width} columns. Received: x from {x1:g} to "
            f"{x2:g} and y from {y1:g} to {y2:g}. Resize the image first, or set `is_clip`."
        )
    return mat[top : top + down, left : left + across]


def to_hsv(mat: Mat) -> Floats:
    """Hue in degrees, saturation from 0 to 1, and value in the mat's range; rounded as OpenCV's 8 bits are."""
    _check_colour(mat)
    blue, green, red = np.moveaxis(mat.astype(np.float32), 2, 0)
    value = np.maximum(np.maximum(blue, green), red)
    spread = value - np.minimum(np.minimum(blue, green), red)
    safe = np.where(spread == 0, 1, spread)
    hue = np.select(
        [spread == 0, value == red, value == green],
        [np.zeros_like(value), (green - blue) / safe, 2 + (blue - red) / safe],
        4 + (red - green) / safe,
    )
    saturation = np.divide(spread, value, out=np.zeros_like(value), where=value != 0)
    found = np.stack([(hue * 60) % 360, saturation, value], axis=2)
    if mat.dtype == np.uint8:
        found[:, :, 0] = np.rint(found[:, :, 0] / 2) % 180 * 2
        found[:, :, 1] = np.rint(found[:, :, 1] * 255) / 255
    return found.astype(np.float32)


def from_hsv(mat: Mat, hsv: Floats) -> Mat:
    """Returns the colours of `to_hsv` as pixels of the mat's type."""
    hue, saturation, value = np.moveaxis(hsv, 2, 0)
    sector = (hue / 60) % 6
    whole = np.floor(sector)
    part = sector - whole
    low, falling, rising = (value * (1 - saturation * each) for each in (1.0, part, 1 - part))
    which = whole.astype(int) % 6
    red = np.choose(which, [value, falling, low, low, rising, value])
    green = np.choose(which, [rising, value, value, falling, low, low])
    blue = np.choose(which, [low, low, rising, value, value, falling])
    return like(mat, np.stack([blue, green, red], axis=2))


def hue_turned(mat: Mat, delta: float) -> Mat:
    """The hue turned, in OpenCV's units: 180 a circle for 8 bits, which end at 0 and 255, and 360 for floats."""
    hsv = to_hsv(mat)
    if mat.dtype == np.uint8:
        hsv[:, :, 0] = np.clip(np.rint(hsv[:, :, 0] / 2 + delta), 0, 255) * 2
    else:
        hsv[:, :, 0] += delta
    return from_hsv(mat, hsv)


def saturated(mat: Mat, factor: float) -> Mat:
    """Returns the saturation times a factor."""
    hsv = to_hsv(mat)
    hsv[:, :, 1] *= factor
    if mat.dtype == np.uint8:
        hsv[:, :, 1] = np.clip(np.rint(hsv[:, :, 1] * 255), 0, 255) / 255
    return from_hsv(mat, hsv)


def normalized(mat: Mat, low: float, high: float, kind: int) -> Mat:
    """OpenCV's `normalize` over all channels: to a norm of `low`, or to the range from `low` to `high`."""
    values = mat.astype(np.float64)
    if kind == MINMAX:
        least, most = float(values.min()), float(values.max())
        first, last = min(low, high), max(low, high)
        scale = (last - first) / (most - least) if most - least > np.finfo(np.float64).eps else 0.0
        return like(mat, values * scale + first - least * scale)
    order: float = {INF: np.inf, L1: 1, L2: 2}[kind]
    norm = float(np.linalg.norm(values.reshape(-1), order))
    return like(mat, values * (low / norm if norm > np.finfo(np.float64).eps else 0.0))


def _mode(image: Any, codec: int) -> str:
    if codec > 0:
        return "RGB"
    if codec == 0 or image.mode in {"1", "L", "I;16"}:
        return "L"
    has_alpha = image.mode in {"LA", "RGBA", "PA", "La", "RGBa"} or "transparency" in image.info
    return "RGBA" if has_alpha else "RGB"


def _along(mat: Mat, axis: int, length: int, mode: int) -> Mat:
    """Returns the mat with another length along an axis, as floats."""
    had = mat.shape[axis]
    if had == length:
        return mat
    if mode == NEAREST:
        return np.asarray(np.take(mat, np.minimum((np.arange(length) * (had / length)).astype(int), had - 1), axis))
    if mode == SMOOTH:
        weights = _overlaps(had, length)
        return np.moveaxis(np.tensordot(weights, mat.astype(np.float32), axes=(1, axis)), 0, axis)
    places, weights = _taps(had, length, mode)
    shape = [1] * mat.ndim
    shape[axis] = length
    found = np.zeros([length if at == axis else each for at, each in enumerate(mat.shape)], np.float32)
    for place, weight in zip(places.T, weights.T, strict=True):
        found += np.take(mat, place, axis) * weight.reshape(shape)
    return found


@functools.lru_cache(maxsize=64)
def _taps(had: int, length: int, mode: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """For each new place the old ones that it is made of, and their weights."""
    if mode == AREA:
        # If it enlarges, OpenCV's area mode interpolates between the two nearest in its own way.
        at = np.arange(length)
        whole = np.floor(at * (had / length))
        share = (at + 1) - (whole + 1) * (length / had)
        share = np.where(share <= 0, 0.0, share - np.floor(share))[:, np.newaxis]
        both = np.clip(whole[:, np.newaxis].astype(np.int64) + np.array([0, 1]), 0, had - 1)
        return both, np.concatenate([1 - share, share], axis=1).astype(np.float32)
    centre = (np.arange(length) + 0.5) * (had / length) - 0.5
    first = np.floor(centre)
    part = (centre - first)[:, np.newaxis]
    if mode == LINEAR:
        offsets = np.array([0, 1])
        weights = np.concatenate([1 - part, part], axis=1)
    elif mode == CUBIC:
        offsets = np.arange(-1, 3)
        weights = _cubic(np.abs(part - offsets))
    else:
        offsets = np.arange(-3, 5)
        distance = part - offsets
        weights = np.sinc(distance) * np.sinc(distance / 4)
        weights /= weights.sum(axis=1, keepdims=True)
    places = np.clip(first[:, np.newaxis].astype(np.int64) + offsets, 0, had - 1)
    return places, weights.astype(np.float32)


def _cubic(distance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    sharp = -0.75
    near = ((sharp + 2) * distance - (sharp + 3)) * distance**2 + 1
    far = ((sharp * distance - 5 * sharp) * distance + 8 * sharp) * distance - 4 * sharp
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


@functools.lru_cache(maxsize=64)
def _overlaps(had: int, length: int) -> Floats:
    """Returns how much of each new place each old one covers."""
    step = had / length
    starts = np.arange(length)[:, np.newaxis] * step
    old = np.arange(had)[np.newaxis, :]
    shared = np.minimum(starts + step, old + 1) - np.maximum(starts, old)
    return np.asarray(np.clip(shared, 0, None) / step, np.float32)


def _check_colour(mat: Mat) -> None:
    if mat.shape[2] != 3:
        raise DataError(
            f"An image must have three channels for a step on colours. Received: {mat.shape[2]}. Read it with "
            "image_codec=1."
        )
