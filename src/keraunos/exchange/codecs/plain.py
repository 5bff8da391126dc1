"""Values as they are, of any type. Runs on both sides of the wire."""

from __future__ import annotations

from typing import Any

import numpy as np

from keraunos.exchange.codecs.codec import Bytes, Codec
from keraunos.parameters import Vector


class PlainCodec(Codec):
    """The values' own memory is what is sent."""

    name = "plain"
    lossless = True

    def encoded_size(self, length: int, itemsize: int = 4) -> int:
        """As many bytes as the values take."""
        return length * itemsize

    def encode(self, values: Vector, out: Bytes) -> Bytes:
        """A view of `values`; nothing is copied."""
        return values.view(np.uint8)

    def decode(self, payload: Any, out: Vector) -> None:
        """Copy the payload into `out`."""
        np.copyto(out.view(np.uint8), self.payload_bytes(payload, out.size, out.itemsize))
