"""Sides of images behind convolutions and poolings, by Paddle's formulas. Runs on the driver."""

from __future__ import annotations

from math import isqrt


def conv_side(side: int, window: int, padding: int, stride: int, *, floor: bool) -> int:
    """Returns how many windows fit along a side; the ceiling rule counts a last one that stands over the edge."""
    room = 2 * padding + side - window
    return 1 + (room // stride if floor else -(-room // stride))


def trans_conv_side(side: int, window: int, padding: int, stride: int, *, floor: bool) -> int:
    """Returns the side that a convolution of these numbers would make `side` of."""
    return (side - 1) * stride + window - 2 * padding + (0 if floor else 1)


def pool_side(side: int, window: int, start: int, stride: int, *, floor: bool) -> int:
    """Returns how many windows fit from `start` on, without padding."""
    return conv_side(side - start, window, 0, stride, floor=floor)


def square_side(pixels: int) -> int | None:
    """Returns the side of a square of that many pixels, if there is one."""
    side = isqrt(pixels)
    return side if side * side == pixels else None


def context_padding(start: int, length: int) -> int:
    """Returns how many steps before and behind a sequence a window of neighbours reaches."""
    return max(0, -start) + max(0, start + length - 1)
