"""How the vector of a RESULT becomes the bytes that a rank is sent. Runs where a slice is hosted.

Without compression the vector's own memory is sent. With it a gradient is encoded with the error of the last one
added, and parameters as the difference from what the receiver has; the first time a receiver gets them whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from keraunos.exchange.codecs.codec import Bytes
from keraunos.exchange.codecs.feedback import Difference, ErrorFeedback
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.messages import RoundResult
from keraunos.exchange.wire import Message, chunks
from keraunos.parameters import Vector

# All ranks of a synchronous plan get the same bytes, and have the same.
_EVERYONE = -1


class Downlink:
    """The results of one slice on their way to its workers."""

    def __init__(self, compression: str | None, length: int, *, synchronous: bool, differences: bool) -> None:
        self._codec = None if compression is None else codec_named(compression)
        self._length = length
        self._synchronous = synchronous
        self._differences = differences
        self._held: dict[int, Difference] = {}
        self._feedback = None if self._codec is None or differences else ErrorFeedback(self._codec, length)
        self._encoded: dict[int, tuple[int, list[Bytes]]] = {}
        self._buffers: dict[int, list[Bytes]] = {}

    def keep(self) -> Vector:
        """What the next result is encoded with, where everyone gets the same; a copy, empty where there is none."""
        found = self._shared()
        return np.empty(0, np.float32) if found is None else found.copy()

    def go_on_from(self, kept: Vector) -> None:
        """Encode the next result with what was kept."""
        if not kept.size:
            return
        if self._feedback is not None:
            np.copyto(self._feedback.residual, kept)
        elif self._codec is not None:
            self._held[_EVERYONE] = Difference(self._codec, np.array(kept))

    def messages(self, message: Message, result: RoundResult, vector: Vector) -> Iterator[Message]:
        """The messages that carry `vector`, each like `message`, which says `result`."""
        if self._codec is None or (result.first and not self._differences):
            yield from _plain(message, vector)
        elif result.first:
            yield from _plain(message, self._start(message.rank, vector))
        else:
            yield from self._coded(replace(message, body=replace(result, coded=True).body()), vector)

    def _shared(self) -> Vector | None:
        if not self._synchronous:
            return None
        if self._feedback is not None:
            return self._feedback.residual
        return self._held[_EVERYONE].held if _EVERYONE in self._held else None

    def _start(self, rank: int, vector: Vector) -> Vector:
        """What a receiver has from now on, whole."""
        assert self._codec is not None
        key = _EVERYONE if self._synchronous else rank
        if key not in self._held or not self._synchronous:
            self._held[key] = Difference(self._codec, np.array(vector))
            self._encoded.pop(key, None)
        return self._held[key].held

    def _coded(self, message: Message, vector: Vector) -> Iterator[Message]:
        key = _EVERYONE if self._synchronous else message.rank
        number, payloads = self._encoded.get(key, (-1, []))
        if number != message.round:
            # A repetition must be the same bytes: what is encoded counts as received.
            payloads = self._encode(key, vector)
            self._encoded[key] = (message.round, payloads)
        for (start, _), payload in zip(chunks(vector.size, vector.itemsize), payloads, strict=True):
            yield replace(message, offset=start, payload=payload)

    def _encode(self, key: int, vector: Vector) -> list[Bytes]:
        """The chunks as they travel, in buffers that are used again: nobody asks for the round before the last."""
        assert self._codec is not None
        encoder = self._feedback or self._held[key]
        places = chunks(vector.size, vector.itemsize)
        if key not in self._buffers:
            self._buffers[key] = [self._codec.buffer(stop - start, vector.itemsize) for start, stop in places]
        return [
            encoder.encode(vector[start:stop], buffer, start)
            for (start, stop), buffer in zip(places, self._buffers[key], strict=True)
        ]


def _plain(message: Message, vector: Vector) -> Iterator[Message]:
    for start, stop in chunks(vector.size, vector.itemsize):
        yield replace(message, offset=start, payload=vector[start:stop])
