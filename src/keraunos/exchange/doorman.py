"""Bounds what strangers can take from a server before they have authenticated. Runs in a thread beside a TCP server.

ZeroMQ accepts every connection and reads its first frame into memory. The doorman hears of each connection, sees from
the system's own counters whether the handshake is over, and shuts down those that take too long, send too much, or are
too many. A worker that was shut out among them connects again by itself.
"""

from __future__ import annotations

import logging
import os
import resource
import socket as sockets
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import zmq
from zmq.utils.monitor import recv_monitor_message

logger = logging.getLogger(__name__)

# How long a connection may take to authenticate.
HANDSHAKE_SECONDS = 10
# So many connections may be about to authenticate, and so many of them for longer than a second.
MOST_PENDING = 128
MOST_WAITING = 32
_SOON_SECONDS = 1.0
# A client of ours sends less than this before it is let in, and is sent more than this by the time it is.
MOST_BYTES = 4096
_GREETED_BYTES = 260
# Descriptors that a process of ours may have at once, where the system's hard limit allows it: far more than strangers
# can hold before they are shut out, so that files can still be opened.
_DESCRIPTORS = 65_536

_LOOK_MS = 50
_TOLD = frozenset({1, 100, 10_000, 1_000_000})
_EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_ACCEPT_FAILED | zmq.EVENT_MONITOR_STOPPED
# Where Linux has the bytes that were acknowledged and received in its `tcp_info`.
_COUNTERS = struct.Struct("=QQ")
_COUNTERS_AT = 120


@dataclass(frozen=True)
class Traffic:
    """What the system has counted of a connection: bytes to the client that it has acknowledged, and bytes from it."""

    sent: int
    received: int


class Doorman:
    """Watches a ROUTER socket that listens on a port; a context manager, entered and left where the socket belongs."""

    def __init__(self, socket: zmq.Socket[bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self.turned_away = 0
        self._socket = socket
        self._clock = clock
        self._port: int | None = None
        self._pending: dict[int, float] = {}
        self.thread = threading.Thread(target=self._watch, name="keraunos-doorman", daemon=True)

    def __enter__(self) -> Self:
        _raise_limit()
        self._monitor: zmq.Socket[Any] = self._socket.get_monitor_socket(_EVENTS)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.thread.is_alive():
            # ZeroMQ waits for room among events that nobody reads, and lets nobody end that meanwhile.
            while self._monitor.poll(0):
                self._monitor.recv_multipart()
        self._socket.disable_monitor()
        self.thread.join()
        self._monitor.close(0)

    def guard(self, port: int) -> None:
        """Watch the connections to this port."""
        self._port = port

    def _watch(self) -> None:
        look_at = self._clock()
        while True:
            if self._monitor.poll(_LOOK_MS if self._pending else None):
                event = recv_monitor_message(self._monitor)
                if event["event"] == zmq.EVENT_MONITOR_STOPPED:
                    return
                if event["event"] == zmq.EVENT_ACCEPTED:
                    # Behind all others, also where an older connection had this descriptor.
                    self._pending.pop(event["value"], None)
                    self._pending[event["value"]] = self._clock()
                while len(self._pending) > MOST_PENDING:
                    self._see(next(iter(self._pending)), too_many=True)
            if self._clock() >= look_at:
                self._look()
                look_at = self._clock() + _LOOK_MS / 1000

    def _look(self) -> None:
        """Forget who was let in or is gone, and turn away who is too slow, too loud, or one too many."""
        waiting = sum(self._clock() - since > _SOON_SECONDS for since in self._pending.values())
        surplus = max(0, waiting - MOST_WAITING)
        for place, descriptor in enumerate(list(self._pending)):
            self._see(descriptor, too_many=place < surplus)

    def _see(self, descriptor: int, *, too_many: bool) -> None:
        """Look at one connection, and turn it away if it has not authenticated and takes too much."""
        with _Connection(descriptor, self._port) as connection:
            traffic = connection.traffic
            if traffic is None or traffic.sent > _GREETED_BYTES:
                del self._pending[descriptor]
                return
            too_slow = self._clock() - self._pending[descriptor] > HANDSHAKE_SECONDS
            if not (too_many or too_slow or traffic.received > MOST_BYTES):
                return
            del self._pending[descriptor]
            connection.shut()
            self.turned_away += 1
            if self.turned_away in _TOLD:
                logger.warning(
                    "%d connection(s) to port %s were closed because they did not authenticate; the last came from "
                    "%s.", self.turned_away, self._port, connection.peer,
                )  # fmt: skip


class _Connection:
    """An accepted connection, by a descriptor of our own: the server's may be another's by now."""

    def __init__(self, descriptor: int, port: int | None) -> None:
        self._socket: sockets.socket | None = None
        try:
            found = sockets.socket(fileno=os.dup(descriptor))
        except OSError:
            return
        try:
            accepted = found.family in {sockets.AF_INET, sockets.AF_INET6} and found.getsockname()[1] == port
            self.peer = found.getpeername()[0] if accepted else ""
        except OSError:
            accepted = False
        if accepted:
            self._socket = found
        else:
            found.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket is not None:
            self._socket.close()

    @property
    def traffic(self) -> Traffic | None:
        """What has travelled; `None` where the connection is gone, or the system does not count."""
        if self._socket is None or not hasattr(sockets, "TCP_INFO"):
            return None
        size = _COUNTERS_AT + _COUNTERS.size
        facts = self._socket.getsockopt(sockets.IPPROTO_TCP, sockets.TCP_INFO, size)
        return Traffic(*_COUNTERS.unpack_from(facts, _COUNTERS_AT)) if len(facts) == size else None

    def shut(self) -> None:
        """Close it for both sides; the server then gives up its own descriptor."""
        if self._socket is not None:
            try:
                self._socket.shutdown(sockets.SHUT_RDWR)
            except OSError:
                return


def _raise_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
