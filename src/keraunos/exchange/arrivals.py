"""The results that a slice's server sends over a socket, put together. Runs on workers."""

from __future__ import annotations

import numpy as np

from keraunos.errors import ExchangeError
from keraunos.exchange.codecs.feedback import Difference
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.messages import RoundResult
from keraunos.exchange.wire import Message, chunk_at
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Vector


class Arrivals:
    """One slice's result of `length` elements as its chunks arrive, in any order, once each."""

    def __init__(self, plan: ExchangePlan, length: int, dtype: str) -> None:
        self._codec = None if plan.compression is None else codec_named(plan.compression)
        # Parameters come as the difference from what this worker has; a gradient has nothing before it.
        self._differences = not plan.applies_on_workers
        self._held: Difference | None = None
        self._length = length
        self._dtype = dtype
        self._missing = length
        self._seen: set[int] = set()
        self.values: Vector = np.empty(0, dtype=dtype)

    def expect(self) -> None:
        """From now on chunks are of another result."""
        self._missing = self._length
        self._seen = set()

    def take(self, message: Message, result: RoundResult) -> bool:
        """Take a chunk in, of a message that says `result`; whether the result is complete with it."""
        if message.offset in self._seen:
            if message.offset or (self._held is not None and not result.first):
                return False
            # It is sent again from its beginning, and may not be the same any more. Differences are, and count once.
            self.expect()
        if self.values.size != self._length:
            self.values = np.empty(self._length, dtype=self._dtype)
        start, stop = chunk_at(message.offset, self._length, self.values.itemsize)
        self._seen.add(message.offset)
        self._decode(message, result, start, stop)
        self._missing -= stop - start
        complete = self._missing <= 0
        if complete and result.first and self._codec is not None and self._differences:
            self._held = Difference(self._codec, self.values)
        return complete

    def _decode(self, message: Message, result: RoundResult, start: int, stop: int) -> None:
        target = self.values[start:stop]
        if not result.coded:
            np.copyto(
                target, np.frombuffer(message.payload if message.payload is not None else b"", dtype=target.dtype)
            )
        elif self._held is not None:
            self._held.decode(message.payload, stop - start, start)
        elif self._codec is not None and not self._differences:
            self._codec.decode(message.payload, target)
        else:
            raise ExchangeError("A slice sent a difference before the whole. This is a fault of its server.")
