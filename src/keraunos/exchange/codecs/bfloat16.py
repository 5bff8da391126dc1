"""The upper half of a float32: the same range, 8 bits of precision. Runs on both sides of the wire."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from keraunos.exchange.codecs.codec import Bytes, Codec, require_float32
from keraunos.parameters import Vector

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Bfloat16Codec(Codec):
    """Every value rounded to the nearest bfloat16, ties to even; infinities and NaN stay what they are."""

    name = "bfloat16"

    def encoded_size(self, length: int, itemsize: int = 4) -> int:
        """Two bytes a value."""
        return length * 2

    def encode(self, values: Vector, out: Bytes) -> Bytes:
        """The rounded values, in `out`."""
        require_float32(self, values)
        filled = out[: self.encoded_size(values.size)]
        # A value beyond the largest bfloat16 becomes infinite, which is for the training to notice.
        with np.errstate(all="ignore"):
            np.copyto(filled.view(_BFLOAT16), values, casting="unsafe")
        return filled

    def decode(self, payload: Any, out: Vector) -> None:
        """The values that were sent, widened."""
        require_float32(self, out)
        np.copyto(out, self.payload_bytes(payload, out.size).view(_BFLOAT16), casting="unsafe")
