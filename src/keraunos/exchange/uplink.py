"""How a contribution becomes the bytes that a slice's server is sent. Runs on workers; `Downlink` is its opposite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keraunos.exchange.codecs.feedback import ErrorFeedback
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.wire import chunks
from keraunos.parameters import Vector


class Uplink:
    """One worker's contributions of `length` elements to one slice; its buffers are used again every round."""

    def __init__(self, compression: str | None, length: int, itemsize: int) -> None:
        self._chunks = chunks(length, itemsize)
        self._joined: Vector | None = None
        self._feedback: ErrorFeedback | None = None
        if compression is not None:
            codec = codec_named(compression)
            self._feedback = ErrorFeedback(codec, length)
            self._room = codec.encoded_size(self._chunks[0][1])
            self._encoded = np.empty(len(self._chunks) * self._room, dtype=np.uint8)

    @property
    def residual(self) -> Vector:
        """What was rounded off the last contribution and goes with the next one, where it lies; it may be nothing."""
        return np.empty(0, np.float32) if self._feedback is None else self._feedback.residual

    def pieces(self, views: Sequence[Vector]) -> Iterator[tuple[int, Any, bool]]:
        """The chunks of a contribution: where each starts, what travels for it, and whether it is the last.

        Each is what travels from now on: it is counted as sent.
        """
        values = self._contiguous(views)
        for number, (start, stop) in enumerate(self._chunks):
            payload: Any = values[start:stop]
            if self._feedback is not None:
                payload = self._feedback.encode(payload, self._encoded[number * self._room :], start)
            yield start, payload, stop == values.size

    def _contiguous(self, views: Sequence[Vector]) -> Vector:
        if len(views) == 1:
            return np.ascontiguousarray(views[0])
        if self._joined is None:
            self._joined = np.empty(sum(view.size for view in views), dtype=views[0].dtype)
        fill(self._joined, views)
        return self._joined


def fill(out: Vector, views: Sequence[Vector]) -> None:
    """Copy the views into `out`, one behind the other."""
    place = 0
    for view in views:
        np.copyto(out[place : place + view.size], view)
        place += view.size
