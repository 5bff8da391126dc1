"""One byte a value and one scale for every 1024 of them. Runs on both sides of the wire.

A block is its scale as a little-endian float32, the largest magnitude in it over 127, and then its values as whole
multiples of the scale. The last block of a run may be shorter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.exchange.codecs.codec import Bytes, Codec, require_float32
from keraunos.parameters import Vector

BLOCK = 1024

_LEVELS = np.float32(127)
_SCALE_BYTES = 4
# Blocks that are worked on together: few enough that all passes over them find them in the cache.
_GROUP = 16
# Below it a scale would lose bits of its own, and the block is nothing but zeros.
_SMALLEST = np.finfo(np.float32).tiny
# Above it the largest value of a block would come back infinite.
_LARGEST = np.nextafter(np.finfo(np.float32).max / _LEVELS, np.float32(0))

_Floats = npt.NDArray[np.float32]


class Int8Codec(Codec):
    """Values rounded to the nearest of 255 levels; a block that holds an infinity or NaN comes back all NaN."""

    name = "int8"
    block = BLOCK

    def __init__(self) -> None:
        self._scaled = np.empty((_GROUP, BLOCK), dtype=np.float32)

    def encoded_size(self, length: int, itemsize: int = 4) -> int:
        """One byte a value, four a block."""
        return length + _SCALE_BYTES * -(-length // BLOCK)

    def encode(self, values: Vector, out: Bytes) -> Bytes:
        """The blocks, in `out`."""
        require_float32(self, values)
        filled = out[: self.encoded_size(values.size)]
        with np.errstate(all="ignore"):
            for rows, blocks in _grids(values, filled):
                for start in range(0, len(rows), _GROUP):
                    self._encode_group(rows[start : start + _GROUP], blocks[start : start + _GROUP])
        return filled

    def decode(self, payload: Any, out: Vector) -> None:
        """Every value's multiple times its block's scale."""
        require_float32(self, out)
        # A stranger's scale may be anything; what it makes of the values is not for this side to warn of.
        with np.errstate(all="ignore"):
            for rows, blocks in _grids(out, self.payload_bytes(payload, out.size)):
                for start in range(0, len(rows), _GROUP):
                    group, sent = rows[start : start + _GROUP], blocks[start : start + _GROUP]
                    np.copyto(group, sent["values"])
                    np.multiply(group, sent["scale"][:, None], out=group)

    def _encode_group(self, rows: _Floats, blocks: npt.NDArray[Any]) -> None:
        scales = np.maximum(rows.max(axis=1), -rows.min(axis=1)) / _LEVELS
        broken = ~np.isfinite(scales)
        np.minimum(scales, _LARGEST, out=scales)
        scales[scales < _SMALLEST] = 0
        scales[broken] = np.nan
        inverse = np.where(scales > 0, 1 / scales, np.float32(0))
        scaled = self._scaled[: len(rows), : rows.shape[1]]
        np.multiply(rows, inverse[:, None], out=scaled)
        np.rint(scaled, out=scaled)
        if broken.any():
            scaled[broken] = 0
        blocks["scale"] = scales
        np.copyto(blocks["values"], scaled, casting="unsafe")


def _grids(values: Vector, encoded: Bytes) -> list[tuple[_Floats, npt.NDArray[Any]]]:
    """The whole blocks, and then the one that is cut short, as rows of values and as records of the bytes."""
    whole = values.size // BLOCK
    short = values.size % BLOCK
    split = whole * (BLOCK + _SCALE_BYTES)
    grids = []
    if whole:
        rows = values[: whole * BLOCK].reshape(whole, BLOCK)
        grids.append((rows, encoded[:split].view(_record(BLOCK))))
    if short:
        grids.append((values[whole * BLOCK :].reshape(1, short), encoded[split:].view(_record(short))))
    return grids


def _record(length: int) -> np.dtype[Any]:
    return np.dtype([("scale", "<f4"), ("values", "i1", (length,))])
