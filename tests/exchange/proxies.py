"""Real connections that break: every link of the job goes through a small proxy that loses or holds what passes."""

import contextlib
import selectors
import socket as sockets
import struct
import threading

from keraunos.exchange.link import Link

# A heartbeat of ZeroMQ's is shorter; every message of ours is longer.
_SHORTEST_MESSAGE = 40
_LOOK_SECONDS = 0.05
UP, DOWN = "up", "down"


class Proxies:
    """One proxy for each address that somebody connects to, while it is open; a context manager."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self._lock = threading.Lock()
        self._proxies = {}
        self.closed = False

    def __enter__(self):
        make = Link.__init__

        def through(link, context, connection, rank, incarnation):
            make(link, context, {**connection, "address": self.address(connection["address"])}, rank, incarnation)

        self._monkeypatch.setattr(Link, "__init__", through)
        return self

    def __exit__(self, *_):
        self._monkeypatch.undo()
        for proxy in self._proxies.values():
            proxy.close()

    def address(self, target):
        """Where to connect to instead."""
        with self._lock:
            if target not in self._proxies:
                self._proxies[target] = _Proxy(target)
            return self._proxies[target].address

    def of(self, target):
        """The proxy of an address."""
        return self._proxies[target]

    @property
    def lost(self):
        return sum(proxy.lost for proxy in self._proxies.values())

    @property
    def accepted(self):
        return sum(proxy.accepted for proxy in self._proxies.values())

    def each(self):
        return list(self._proxies.values())


class _Proxy:
    """Passes bytes on in a thread of its own, until it is told to lose some or to hold still."""

    def __init__(self, target):
        self._target = target.removeprefix("ipc://")
        self.address = f"{target}-proxy"
        self._listener = sockets.socket(sockets.AF_UNIX)
        self._listener.bind(self.address.removeprefix("ipc://"))
        self._listener.listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._pairs = {}
        self._losing = set()
        self._holding = False
        self._ended = False
        self.lost = 0
        self.accepted = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._ended = True
        self._thread.join()

    def lose(self, direction):
        """The next message in that direction is lost, and the connection with it."""
        self._losing.add(direction)

    def hold(self, holding):
        """Pass nothing on, or go on."""
        self._holding = holding

    def _serve(self):
        while not self._ended:
            for key, _ in self._selector.select(_LOOK_SECONDS):
                if key.fileobj is self._listener:
                    self._accept()
                elif not self._holding and key.fileobj in self._pairs:
                    self._pass_on(key.fileobj)
            if self._holding:
                # What is held is readable all the time.
                threading.Event().wait(_LOOK_SECONDS)
        for each in list(self._pairs):
            self._end(each)
        self._selector.close()
        self._listener.close()

    def _accept(self):
        client, _ = self._listener.accept()
        server = sockets.socket(sockets.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            client.close()
            server.close()
            return
        self.accepted += 1
        for one, other, direction in ((client, server, UP), (server, client, DOWN)):
            self._pairs[one] = (other, direction)
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, source):
        other, direction = self._pairs[source]
        try:
            data = source.recv(1 << 16)
            if direction in self._losing and len(data) > _SHORTEST_MESSAGE:
                self._losing.discard(direction)
                self.lost += 1
                data = b""
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        self._end(source)

    def _end(self, source):
        if source not in self._pairs:
            return
        other, _ = self._pairs[source]
        for each in (source, other):
            if self._pairs.pop(each, None) is not None:
                self._selector.unregister(each)
            # At once, and with a reset: what is on its way is lost.
            with contextlib.suppress(OSError):
                each.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
            each.close()
