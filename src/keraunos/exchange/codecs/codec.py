"""The base of the codecs: values to bytes and back. Runs on both sides of the wire.

A vector travels in chunks, and every chunk is encoded on its own, so that any chunk can be decoded alone and in any
order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from keraunos.exchange.wire import WireError
from keraunos.parameters import Vector

Bytes = npt.NDArray[np.uint8]


class Codec(ABC):
    """One way for values to travel.

    `block` is how many values are encoded together: a run of values whose start is a multiple of it has the same
    bytes whether it is encoded alone or as a part of a longer run. `lossless` says whether `decode` gives back the
    very values.

    Threads: a codec may hold scratch space, so it belongs to one thread; threads ask for one each.
    Failure: what comes from the wire is not trusted, and `decode` raises `WireError` for a payload of another size
    than the values need. Values that are not finite are no error: they come out not finite.
    """

    name: ClassVar[str]
    block: ClassVar[int] = 1
    lossless: ClassVar[bool] = False

    @abstractmethod
    def encoded_size(self, length: int, itemsize: int = 4) -> int:
        """The number of bytes that `length` values of that size become."""

    @abstractmethod
    def encode(self, values: Vector, out: Bytes) -> Bytes:
        """What is to be sent for `values`: a view of the first bytes of `out`.

        A codec that has nothing to change gives a view of `values` and leaves `out` alone; either may be written again
        only when what was given is sent.
        """

    @abstractmethod
    def decode(self, payload: Any, out: Vector) -> None:
        """Fill `out` from a payload that `encode` made of as many values."""

    def buffer(self, length: int, itemsize: int = 4) -> Bytes:
        """A buffer that `encode` can use again and again for up to `length` values."""
        return np.empty(0 if self.lossless else self.encoded_size(length, itemsize), dtype=np.uint8)

    def payload_bytes(self, payload: Any, length: int, itemsize: int = 4) -> Bytes:
        """The payload as bytes, or a `WireError` where it cannot be `length` values."""
        try:
            view = np.frombuffer(payload, dtype=np.uint8) if memoryview(payload).nbytes else np.empty(0, np.uint8)
        except (TypeError, ValueError, BufferError) as error:
            raise WireError(f"a payload of {self.name} values cannot be read: {error}") from None
        expected = self.encoded_size(length, itemsize)
        if view.size != expected:
            raise WireError(f"{length} values as {self.name} have {expected} bytes, not {view.size}")
        return view


def require_float32(codec: Codec, values: Vector) -> None:
    """Raise where values are not what the codecs that lose precision are made for."""
    if values.dtype != np.float32:
        raise TypeError(f"A {codec.name} codec takes float32 values. Received: {values.dtype}. Use the plain codec.")
