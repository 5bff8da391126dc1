"""Codecs that forget nothing: what one message could not carry is carried by the next. Runs on both sides.

`ErrorFeedback` is for values that are summed at the other end (gradients, updates): the error of a message is added
to the values of the next one. `Difference` is for values that replace what the other end has (parameters): what is
sent is the difference from what the receiver is known to have.

A vector is sent in chunks; `start` says where a chunk lies in it. Neither makes a large buffer after it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from keraunos.exchange.codecs.codec import Bytes, Codec
from keraunos.exchange.wire import WireError
from keraunos.parameters import Vector

# Values worked on together: a multiple of every codec's block, and small enough to stay in the cache.
_PIECE = 1 << 14


class ErrorFeedback:
    """Encodes a vector time after time, each time adding what the last time lost.

    So the sum of everything decoded is the sum of everything given, up to the last `residual`. Every call counts as
    sent: to send again, send the bytes again. A lossless codec leaves no residual, and the values go through.
    """

    def __init__(self, codec: Codec, length: int) -> None:
        self.codec = codec
        self.residual: Vector = np.zeros(0 if codec.lossless else length, dtype=np.float32)
        self._wanted = np.empty(_PIECE, dtype=np.float32)
        self._decoded = np.empty(_PIECE, dtype=np.float32)

    def encode(self, values: Vector, out: Bytes, start: int = 0) -> Bytes:
        """What is to be sent for the chunk of `values` that starts at `start` of the vector."""
        codec = self.codec
        if codec.lossless:
            return codec.encode(values, out)
        residual = self.residual[start : start + values.size]
        # Values that are not finite leave a residual that is not: the training fails with them, not this arithmetic.
        with np.errstate(all="ignore"):
            for piece, place in _pieces(codec, values.size):
                wanted = np.add(values[piece], residual[piece], out=self._wanted[: piece.stop - piece.start])
                decoded = self._decoded[: wanted.size]
                codec.decode(codec.encode(wanted, out[place]), decoded)
                np.subtract(wanted, decoded, out=residual[piece])
        return out[: codec.encoded_size(values.size)]


class Difference:
    """One side's copy of what the receiver has; the sender encodes with it, the receiver decodes into it.

    Both sides start from equal copies of `held` and make the same additions, so the copies stay equal to the bit, and
    an error made once is part of the next difference instead of adding up. `held` is changed in place. With a
    lossless codec the values themselves travel.
    """

    def __init__(self, codec: Codec, held: Vector) -> None:
        self.codec = codec
        self.held = held
        self._wanted = np.empty(_PIECE, dtype=np.float32)
        self._decoded = np.empty(_PIECE, dtype=np.float32)

    def encode(self, values: Vector, out: Bytes, start: int = 0) -> Bytes:
        """What brings the receiver's chunk at `start` to `values`, or near them; it counts as received."""
        codec = self.codec
        held = self.held[start : start + values.size]
        if codec.lossless:
            np.copyto(held, values)
            return codec.encode(values, out)
        with np.errstate(all="ignore"):
            for piece, place in _pieces(codec, values.size):
                wanted = np.subtract(values[piece], held[piece], out=self._wanted[: piece.stop - piece.start])
                decoded = self._decoded[: wanted.size]
                codec.decode(codec.encode(wanted, out[place]), decoded)
                np.add(held[piece], decoded, out=held[piece])
        return out[: codec.encoded_size(values.size)]

    def decode(self, payload: Any, length: int, start: int = 0) -> Vector:
        """Bring the chunk of `length` values at `start` to what the sender meant; the view of it in `held`.

        A malformed payload, or a place outside of the vector, raises `WireError` and leaves `held` as it was.
        """
        codec = self.codec
        if start < 0 or length < 0 or start + length > self.held.size:
            raise WireError(f"{length} values at {start} do not lie in a vector of {self.held.size}")
        held = self.held[start : start + length]
        if codec.lossless:
            codec.decode(payload, held)
            return held
        encoded = codec.payload_bytes(payload, length)
        with np.errstate(all="ignore"):
            for piece, place in _pieces(codec, length):
                decoded = self._decoded[: piece.stop - piece.start]
                codec.decode(encoded[place], decoded)
                np.add(held[piece], decoded, out=held[piece])
        return held


def _pieces(codec: Codec, length: int) -> Iterator[tuple[slice, slice]]:
    """Where the pieces of a chunk lie among its values and among its bytes."""
    for start in range(0, length, _PIECE):
        stop = min(length, start + _PIECE)
        yield slice(start, stop), slice(codec.encoded_size(start), codec.encoded_size(stop))
