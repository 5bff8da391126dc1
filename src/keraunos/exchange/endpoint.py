"""A socket that only the job's own workers can speak to, and what limits them. Runs where a server runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self

import zmq

from keraunos.errors import ClusterError
from keraunos.exchange import security
from keraunos.exchange.addresses import file_address, tcp_address
from keraunos.exchange.doorman import HANDSHAKE_SECONDS, Doorman
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Message, WireError, decode

logger = logging.getLogger(__name__)

# How many chunks of one connection wait here before its sender is held back.
QUEUE_LENGTH = 64
# An address and the frames of a message; whatever a message has beyond them is thrown away unread.
_MOST_FRAMES = 4
_LINGER_MS = 5000


@dataclass(frozen=True)
class Place:
    """Where a server listens.

    Attributes:
        folder: for a socket file in it; `None` for a port.
        bind: the IP address whose port is listened on.
        advertised: the host that workers connect to, where it is another than `bind`.
        ports: the first and the last port that may be used; any free one without it.
    """

    folder: str | None
    bind: str = ""
    advertised: str = ""
    ports: tuple[int, int] | None = None


class Endpoint:
    """A bound ROUTER socket: a context manager that belongs to one thread at a time."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], place: Place, credentials: security.Credentials
    ) -> None:
        self.dropped = 0
        self._context = context
        self._place = place
        self._credentials = credentials
        self._key = credentials.seal_key
        self.threads: tuple[threading.Thread, ...] = ()
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
            self.socket.handshake_ivl = HANDSHAKE_SECONDS * 1000
            self.address = self._listen()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def connection(self) -> dict[str, Any]:
        """All that a worker needs to connect, as plain data; it holds the job's secrets."""
        ipv6 = ":" in self._place.bind and not ip_address(self._place.bind).is_unspecified
        return {"address": self.address, "ipv6": ipv6, "credentials": self._credentials.for_client()}

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

    def _listen(self) -> str:
        """Listen; the address that workers connect to."""
        place = self._place
        if place.folder is not None:
            address = file_address(place.folder)
            self.socket.bind(address)
            return address
        self.socket.ipv6 = ":" in place.bind
        # Before the first stranger can connect.
        doorman = self._stack.enter_context(Doorman(self.socket))
        port = self._bind()
        doorman.guard(port)
        self.threads = (doorman.thread,)
        return tcp_address(place.advertised or place.bind, port)

    def _bind(self) -> int:
        host, ports = self._place.bind, self._place.ports
        if ports is None:
            return int(self.socket.bind_to_random_port(tcp_address(host, "").removesuffix(":")))
        low, high = ports
        for port in range(low, high + 1):
            try:
                self.socket.bind(tcp_address(host, port))
            except zmq.ZMQError as error:
                if error.errno == zmq.EADDRINUSE:
                    continue
                raise ClusterError(
                    f"Port {port} on {host} cannot be listened on: {error.strerror}. Give `serverPorts` others."
                ) from error
            return port
        if low == high:
            raise ClusterError(
                f"Port {low} on {host} is in use, and `serverPorts` allows no other. Give another port, or end "
                "what listens there."
            )
        raise ClusterError(
            f"No port from {low} to {high} is free on {host}. Expected one for each server of a fit; widen the "
            "range that is given as `serverPorts`, or end what listens there."
        )
