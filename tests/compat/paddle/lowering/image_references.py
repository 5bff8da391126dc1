"""What layers of images should give, as loops over (rows, channels, height, width)."""

from __future__ import annotations

import math

import numpy as np


def conv(x, filters, stride, padding, groups=1, ceil=False):
    """`filters` is (filters, channels of a group, height, width); sides are (down, across)."""
    count, per_group, high, wide = filters.shape
    rule = math.ceil if ceil else math.floor
    sides = [
        1 + rule((2 * pad + side - window) / step)
        for side, window, step, pad in zip(x.shape[2:], (high, wide), stride, padding, strict=True)
    ]
    out = np.zeros((len(x), count, *sides))
    for place in np.ndindex(*out.shape):
        row, filt, down, across = place
        first = filt // (count // groups) * per_group
        for c, i, j in np.ndindex(per_group, high, wide):
            y, z = down * stride[0] + i - padding[0], across * stride[1] + j - padding[1]
            if 0 <= y < x.shape[2] and 0 <= z < x.shape[3]:
                out[place] += x[row, first + c, y, z] * filters[filt, c, i, j]
    return out


def conv_transposed(x, filters, stride, padding, sides, groups=1):
    """`filters` is (channels, filters of a group, height, width); every pixel spreads its filters."""
    channels, per_group, high, wide = filters.shape
    out = np.zeros((len(x), per_group * groups, *sides))
    for row, c, down, across in np.ndindex(*x.shape):
        first = c // (channels // groups) * per_group
        for f, i, j in np.ndindex(per_group, high, wide):
            y, z = down * stride[0] + i - padding[0], across * stride[1] + j - padding[1]
            if 0 <= y < sides[0] and 0 <= z < sides[1]:
                out[row, first + f, y, z] += x[row, c, down, across] * filters[c, f, i, j]
    return out


def from_filters_last(weight, groups, channels, high, wide):
    """Filters of a flat parameter in which each group is [channels, height, width, filters]."""
    parts = weight.reshape(groups, channels // groups, high, wide, -1)
    return np.concatenate([part.transpose(3, 0, 1, 2) for part in parts])


def transposed_from_filters_last(weight, groups, filters, high, wide):
    """Of a transposed convolution: each group is [filters, height, width, channels]."""
    parts = weight.reshape(groups, filters // groups, high, wide, -1)
    return np.concatenate([part.transpose(3, 0, 1, 2) for part in parts])


def pool(x, kind, size, stride, padding=(0, 0), start=0, ceil=True):
    """Windows that are cut at the edge; a mean counts the padding, but nothing beyond it."""
    x = x[:, :, start:, start:]
    rule = math.ceil if ceil else math.floor
    sides = [
        1 + rule((side + 2 * pad - window) / step)
        for side, window, step, pad in zip(x.shape[2:], size, stride, padding, strict=True)
    ]
    out = np.zeros((*x.shape[:2], *sides))
    for down, across in np.ndindex(*sides):
        top, left = down * stride[0] - padding[0], across * stride[1] - padding[1]
        bottom = min(top + size[0], x.shape[2] + padding[0])
        right = min(left + size[1], x.shape[3] + padding[1])
        window = x[:, :, max(0, top) : min(bottom, x.shape[2]), max(0, left) : min(right, x.shape[3])]
        if kind == "max":
            out[:, :, down, across] = window.max(axis=(2, 3)) if window.size else 0.0
        else:
            out[:, :, down, across] = window.sum(axis=(2, 3)) / ((bottom - top) * (right - left))
    return out


def local_norm(x, size, scale, power):
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        first = c - size // 2
        near = x[:, max(0, first) : max(0, first + size)]
        out[:, c] = x[:, c] / (1 + scale * (near**2).sum(axis=1)) ** power
    return out


def pyramid(x, kind, height):
    parts = []
    for level in range(height):
        bins = 2**level
        size = [math.ceil(side / bins) for side in x.shape[2:]]
        padding = [(window * bins - side + 1) // 2 for window, side in zip(size, x.shape[2:], strict=True)]
        parts.append(pool(x, kind, size, size, padding, ceil=False).reshape(len(x), -1))
    return np.concatenate(parts, axis=1)


def bilinear(x, sides):
    out = np.zeros((*x.shape[:2], *sides))
    steps = [(old - 1) / (new - 1) if new > 1 else 0.0 for old, new in zip(x.shape[2:], sides, strict=True)]
    for down, across in np.ndindex(*sides):
        y, z = down * steps[0], across * steps[1]
        top, left = int(y), int(z)
        bottom, right = min(top + 1, x.shape[2] - 1), min(left + 1, x.shape[3] - 1)
        a, b = y - top, z - left
        upper = (1 - b) * x[:, :, top, left] + b * x[:, :, top, right]
        lower = (1 - b) * x[:, :, bottom, left] + b * x[:, :, bottom, right]
        out[:, :, down, across] = (1 - a) * upper + a * lower
    return out


def blocks(x, block, stride, padding, counts):
    """(rows, steps, channels times block)."""
    wide = np.pad(x, [(0, 0), (0, 0), *[(pad, pad + side) for pad, side in zip(padding, block, strict=True)]])
    found = []
    for down, across in np.ndindex(*counts):
        top, left = down * stride[0], across * stride[1]
        found.append(wide[:, :, top : top + block[0], left : left + block[1]].reshape(len(x), -1))
    return np.stack(found, axis=1)


def batch_norm(x, gamma, beta, epsilon=1e-5):
    mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
    return normalized(x, mean, variance, gamma, beta, epsilon)


def normalized(x, mean, variance, gamma, beta, epsilon=1e-5):
    def wide(each):
        return np.reshape(each, (1, -1, 1, 1))

    return (x - wide(mean)) / np.sqrt(wide(variance) + epsilon) * wide(gamma) + wide(beta)
