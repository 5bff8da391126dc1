"""One connection of a worker to a server. Runs on workers, and on executors that host slices."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy.typing as npt
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.security import Credentials, arm_client
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Kind, Message, WireError, decode

_LINGER_MS = 5000
_SEND_SECONDS = 60
# A connection of which nothing is heard, not even the other side's network, is made anew.
_BEAT_MS = 2000
_SILENT_MS = 10_000


class Link:
    """A connected DEALER socket: a context manager that belongs to one thread."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], connection: Mapping[str, Any], rank: int, incarnation: int
    ) -> None:
        self.address = str(connection["address"])
        self._context = context
        self._credentials = Credentials(**connection["credentials"])
        self._key = self._credentials.seal_key
        self._rank = rank
        self._incarnation = incarnation
        self._stack = ExitStack()
        # The first byte of a name may not be 0, which ZeroMQ keeps for those that it gives itself.
        self.name = b"k" + secrets.token_bytes(15)

    def __enter__(self) -> Self:
        with self._stack:
            self.socket: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.DEALER))
            # The server knows this worker by a name that outlives the connection, and that nobody else has.
            self.socket.routing_id = self.name
            self.socket.heartbeat_ivl = _BEAT_MS
            self.socket.heartbeat_timeout = _SILENT_MS
            self.socket.linger = _LINGER_MS
            self.socket.sndtimeo = _SEND_SECONDS * 1000
            self.socket.rcvhwm = 0
            self.socket.maxmsgsize = CHUNK_BYTES + MAX_BODY_BYTES
            arm_client(self.socket, self._credentials)
            self.socket.connect(self.address)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def send(
        self,
        kind: Kind,
        round_: int = 0,
        offset: int = 0,
        body: Mapping[str, Any] | None = None,
        payload: npt.NDArray[Any] | memoryview | None = None,
        number: int = 0,
    ) -> None:
        """Send a message as this rank; a payload must stay as it is until the server has answered."""
        message = Message(kind, self._rank, self._incarnation, round_, offset, body or {}, payload, number)
        try:
            self.socket.send_multipart(message.encode(self._key), copy=payload is None)
        except zmq.Again:
            raise ExchangeError(
                f"Nothing was taken by the server at {self.address} for {_SEND_SECONDS} s; it is gone, or the network "
                "between it and this worker is."
            ) from None

    def receive(self) -> Message | None:
        """The next message that is here."""
        try:
            frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        try:
            return decode([frame.buffer for frame in frames], self._key)
        except WireError as error:
            raise ExchangeError(f"The server at {self.address} sent something that is no message: {error}.") from error
