"""Columns of Spark's image struct as arrays. Runs on workers.

A block of images is stored as bytes, a quarter of the size of floats, with its channels already in the model's layout.
Only a batch is converted to floats. No Python object is created per row: the pixels are views into Arrow's own buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keraunos.batch import Array, Arrays
from keraunos.errors import DataError
from keraunos.job.columns import Slot
from keraunos.job.pixels import Pixels

# OpenCV's numbers of the types that hold one byte per channel, and how many channels each has.
_CHANNELS_OF = {0: 1, 16: 3, 24: 4}

Size = tuple[int, int, int]


def image_size(name: str, array: Any, number: Callable[[int], int], known: tuple[int, ...] | None) -> Size:
    """Returns the height, width and channels that all images of a column have, as those before them.

    Args:
        name: the column.
        array: its Arrow struct, without nulls.
        number: returns the number of a row of `array` in the stream.
        known: the height, width and channels of the previous images.
    """
    modes = _numbers(array, "mode")
    wrong = np.flatnonzero(~np.isin(modes, list(_CHANNELS_OF)))
    if len(wrong):
        raise DataError(
            f"Column {name!r} holds an image whose channels are not bytes. Expected mode 0, 16 or 24: one, three or "
            f"four channels of 8 bits. Received: mode {modes[wrong[0]]} in row {number(int(wrong[0]))}. Read the files "
            "with keraunos.data.images.read_images, which converts them."
        )
    sizes = np.stack([_numbers(array, field) for field in ("height", "width", "nChannels")], axis=1)
    height, width, channels = sizes[0].tolist() if known is None else known
    expected = (height, width, channels)
    wrong = np.flatnonzero((sizes != np.asarray(expected)).any(axis=1))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"Column {name!r} holds images of several sizes; all rows must have one. Expected {_told(expected)}, as in "
            f"the first row. Received: {_told(sizes[row])} in row {number(row)}. Bring them to one size, as with "
            "read_images(spark, path, size=224)."
        )
    _check_lengths(name, array, number, expected, modes)
    return expected


def image_block(slot: Slot, array: Any, size: Size) -> Array:
    """Returns the images of a column as one block of bytes, in the layout of the slot."""
    assert slot.pixels is not None
    rows = _bytes_of(array.field("data"), len(array) * math.prod(size)).reshape(len(array), *size)
    rows = _laid_out(rows, slot.pixels)
    # A model with a flat input gets the same numbers, flat.
    return rows.reshape(len(rows), math.prod(size)) if slot.shape is not None and len(slot.shape) == 1 else rows


def as_inputs(slots: Sequence[Slot], arrays: Arrays, floatx: str) -> Arrays:
    """Model inputs with the images among them scaled."""
    if all(slot.kind != "image" for slot in slots):
        return arrays
    if not isinstance(arrays, dict):
        return scaled(slots[0], arrays, floatx)
    return {str(slot.name): scaled(slot, arrays[str(slot.name)], floatx) for slot in slots}


def scaled(slot: Slot, rows: Array, floatx: str) -> Array:
    """Returns a block of images as the numbers that the model gets; of anything else, the block itself."""
    pixels = slot.pixels
    if pixels is None or pixels.scale is None:
        return rows
    dtype = np.dtype(floatx if floatx in ("float16", "float64") else "float32")
    out: Array = np.multiply(rows, dtype.type(pixels.scale), dtype=dtype)
    if pixels.mean is not None:
        offsets = np.asarray(pixels.mean, dtype=np.float64) * pixels.scale
        _subtract(out, offsets.astype(dtype), pixels, slot)
    return out


def _subtract(out: Array, offsets: Array, pixels: Pixels, slot: Slot) -> None:
    """Subtract one number per channel, in loops that are longer than the few channels of a pixel."""
    flat = out.reshape(len(out), -1)
    channels = len(offsets)
    if flat.shape[1] % channels or (out.ndim == 4 and out.shape[3 if pixels.layout == "HWC" else 1] != channels):
        raise DataError(
            f"`mean` must have a number for each channel of the images in column {slot.columns[0]!r}. Received: "
            f"{channels} for rows of shape {out.shape[1:]}."
        )
    if pixels.layout == "CHW":
        flat.reshape(len(out), channels, -1)[...] -= offsets[:, None]
    else:
        flat -= np.tile(offsets, flat.shape[1] // channels)


def _laid_out(rows: Array, pixels: Pixels) -> Array:
    """Returns the images in the model's layout, converted once for all epochs."""
    shape = rows.shape
    order = [2, 1, 0, 3][: shape[3]] if pixels.order == "RGB" and shape[3] > 1 else list(range(shape[3]))
    if pixels.layout == "HWC" and order == sorted(order):
        return rows
    out = np.empty((shape[0], *pixels.shape_of(*shape[1:])), dtype=np.uint8)
    target = out if pixels.layout == "HWC" else np.moveaxis(out, 1, -1)
    # By plane, which numpy copies in longer loops than the few channels of a pixel.
    for to, channel in enumerate(order):
        target[..., to] = rows[..., channel]
    return out


def _bytes_of(data: Any, total: int) -> Array:
    """Returns the concatenated values of a binary column, as a view of Arrow's buffer."""
    wide = pa.types.is_large_binary(data.type)
    _, offsets, values = data.buffers()
    if values is None:
        return np.zeros(0, dtype=np.uint8)
    first = int(np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[data.offset])
    return np.frombuffer(values, dtype=np.uint8, count=total, offset=first)


def _check_lengths(name: str, array: Any, number: Callable[[int], int], size: Size, modes: Array) -> None:
    lengths = pc.binary_length(array.field("data")).to_numpy(zero_copy_only=False)
    channels = np.asarray([_CHANNELS_OF[mode] for mode in modes.tolist()])
    wrong = np.flatnonzero((lengths != math.prod(size)) | (channels != size[2]))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"Column {name!r} holds a malformed image. Expected {math.prod(size)} bytes and a mode of {size[2]} "
            f"channels for {_told(size)}. Received: {lengths[row]} bytes and mode {modes[row]} in row {number(row)}."
        )


def _numbers(array: Any, field: str) -> Array:
    values: Array = array.field(field).to_numpy(zero_copy_only=False)
    return values


def _told(size: Any) -> str:
    height, width, channels = size
    return f"height {height}, width {width} and {channels} channel{'s' if channels != 1 else ''}"
