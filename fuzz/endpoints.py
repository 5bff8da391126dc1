"""What stands where a server's socket is: it notes what is sent, as a receiver reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from keraunos.exchange.wire import CHUNK_BYTES, Message, decode

_KEY = b"k" * 32


class NotingEndpoint:
    """Has what servers ask of an endpoint; whatever is sent must be a message that its receiver can read."""

    def __init__(self) -> None:
        self.dropped = 0
        self.sent: dict[bytes, list[Message]] = {}
        self.connection: dict[str, Any] = {"address": "tcp://127.0.0.1:1", "credentials": {}}

    def send(self, client: bytes, message: Message, *, copy: bool = True) -> None:
        """Note a message for a client."""
        frames = message.encode(_KEY)
        if len(frames) == 3:
            frames[2] = np.ascontiguousarray(frames[2]).tobytes()
            assert len(frames[2]) <= CHUNK_BYTES
        self.sent.setdefault(client, []).append(decode(frames, _KEY))

    def taken(self, client: bytes) -> list[Message]:
        """What was sent to a client since this was last asked."""
        return self.sent.pop(client, [])
