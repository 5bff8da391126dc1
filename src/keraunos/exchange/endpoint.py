"""A socket that only the job's own workers can speak to, and what limits them. Runs where a server runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import zmq

from keraunos.errors import ClusterError
from keraunos.exchange import security
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Message, WireError, decode

logger = logging.getLogger(__name__)

# How many chunks of one connection wait here before its sender is held back.
QUEUE_LENGTH = 64
# An address and the frames of a message; whatever a message has beyond them is thrown away unread.
_MOST_FRAMES = 4
_LINGER_MS = 5000


class Endpoint:
    """A bound ROUTER socket: a context manager that belongs to one thread at a time."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        host: str,
        credentials: security.Credentials,
        ports: tuple[int, int] | None = None,
    ) -> None:
        self.dropped = 0
        self._context = context
        self._host = host
        self._credentials = credentials
        self._ports = ports
        self._key = credentials.seal_key
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self.socket: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.ROUTER))
            security.arm_server(self.socket, self._credentials)
            self.socket.linger = _LINGER_MS
            self.socket.rcvhwm = QUEUE_LENGTH
            # A result is one vector and is asked for before the next; a sender that waited here would hold everyone.
            self.socket.sndhwm = 0
            # A worker keeps its name when it has to connect again, and then takes its old place.
            self.socket.router_handover = True
            self.socket.maxmsgsize = CHUNK_BYTES + MAX_BODY_BYTES
            self._port = self._bind()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def connection(self) -> dict[str, Any]:
        """All that a worker needs to connect, as plain data; it holds the job's secrets."""
        return {"address": f"tcp://{self._host}:{self._port}", "credentials": self._credentials.for_client()}

    def receive(self, most: int = QUEUE_LENGTH) -> Iterator[tuple[bytes, Message]]:
        """The messages that are here, each with its sender's address; what is no message is counted and dropped."""
        for _ in range(most):
            try:
                frames = self._frames()
            except zmq.Again:
                return
            try:
                message = decode([frame.buffer for frame in frames[1:]], self._key)
            except WireError as error:
                self.dropped += 1
                logger.debug("dropped a malformed message: %s", error)
                continue
            yield frames[0].bytes, message

    def send(self, client: bytes, message: Message, *, copy: bool = True) -> None:
        """Send to a worker; where it is gone, to nobody."""
        self.socket.send_multipart([client, *message.encode(self._key)], copy=copy)

    def _frames(self) -> list[zmq.Frame]:
        frames = [self.socket.recv(zmq.NOBLOCK, copy=False)]
        while frames[-1].more:
            frame = self.socket.recv(copy=False)
            if len(frames) <= _MOST_FRAMES:
                frames.append(frame)
            else:
                frames[-1] = frame
        return frames

    def _bind(self) -> int:
        if self._ports is None:
            return int(self.socket.bind_to_random_port(f"tcp://{self._host}"))
        low, high = self._ports
        for port in range(low, high + 1):
            try:
                self.socket.bind(f"tcp://{self._host}:{port}")
            except zmq.ZMQError as error:
                if error.errno == zmq.EADDRINUSE:
                    continue
                raise ClusterError(
                    f"Port {port} on {self._host} cannot be listened on: {error.strerror}. Give `ports` others."
                ) from error
            return port
        if low == high:
            raise ClusterError(
                f"Port {low} on {self._host} is in use, and `ports` allows no other. Give another port, or end what "
                "listens there."
            )
        raise ClusterError(
            f"No port from {low} to {high} is free on {self._host}. Expected one for each server of a fit; widen the "
            "range that is given as `ports`, or end what listens there."
        )
