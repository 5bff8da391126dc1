"""A model's weights, given to and changed by clients that hold the server's key. Runs on the driver.

Client and server prove to each other that they know the key before anything else is said; what is then said is a
letter and the bytes of a vector, whose length is checked. Nothing is unpickled.
"""

from __future__ import annotations

import json
import secrets
import socket
import socketserver
import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Self

import numpy as np

from keraunos.compat.elephas.enums.modes import Mode
from keraunos.compat.elephas.utils.serialization import dict_to_model
from keraunos.errors import ClusterError, JobError, one_of
from keraunos.parameters import Layout

GET, UPDATE = b"g", b"u"

# The timeout for authentication with the key, and for the rest of a client's message.
_PATIENCE_SECONDS = 10.0
_LOCAL = "127.0.0.1"

# The keys of this process's servers by port: a client is made with the port alone.
_keys: dict[int, bytes] = {}


class BaseParameterServer:
    """Holds the weights of a model between `start` and `stop`, or within its context.

    Args:
        model: a Keras model, or what `model_to_dict` made of one.
        port: the port to listen on.
        mode: 'asynchronous', one update at a time, or 'hogwild', without locks.
        host: the address to listen on; by default only this machine can reach it.
        custom_objects: custom code of a model that is given as a dict.
    """

    def __init__(
        self,
        model: Any,
        port: int = 4000,
        mode: str = Mode.ASYNCHRONOUS,
        *,
        host: str = _LOCAL,
        custom_objects: Mapping[str, Any] | None = None,
    ) -> None:
        served = [str(each) for each in (Mode.ASYNCHRONOUS, Mode.HOGWILD)]
        if mode not in served:
            raise JobError(one_of("mode", mode, served))
        network = dict_to_model(model, custom_objects) if isinstance(model, Mapping) else model
        weights = network.get_weights()
        names = tuple(f"weight_{at}" for at in range(len(weights)))
        self.layout = Layout(names, tuple(each.shape for each in weights), len(weights))
        self._vector = self.layout.join(weights)
        self._lock: Any = nullcontext() if mode == Mode.HOGWILD else threading.Lock()
        self._address = (host, port)
        self._key = secrets.token_bytes(32)
        self._tcp: _Tcp | None = None

    def start(self) -> None:
        """Listen, and answer clients from now on."""
        try:
            self._tcp = _Tcp(self._address, self)
        except OSError as error:
            raise ClusterError(
                f"`port` must be free. Received: {self._address[1]} ({error}). Choose another one."
            ) from error
        _keys[self._address[1]] = self._key
        threading.Thread(target=self._tcp.serve_forever, args=(0.05,), name="elephas-server", daemon=True).start()

    def stop(self) -> None:
        """Close the port and every connection."""
        if self._tcp is not None:
            _keys.pop(self._address[1], None)
            self._tcp.shutdown()
            self._tcp.server_close()
            self._tcp = None

    def get_parameters(self) -> list[Any]:
        """Returns the weights as they are now."""
        return self.layout.split(self._read())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _read(self) -> Any:
        with self._lock:
            return self._vector.copy()

    def _answer(self, connection: Connection) -> None:
        """Tell a client what the weights are like, and do what it asks for until it hangs up."""
        expected = self._vector.nbytes
        connection.send_bytes(json.dumps(self.layout.to_json()).encode())
        while True:
            asked = connection.recv_bytes(len(GET))
            if asked == GET:
                connection.send_bytes(self._read())
                continue
            update = connection.recv_bytes(expected)
            if asked != UPDATE or len(update) != expected:
                return
            with self._lock:
                self._vector -= np.frombuffer(update, self._vector.dtype)
            connection.send_bytes(asked)


class HttpServer(BaseParameterServer):
    """The server that goes by this name; there is one kind of them."""


class SocketServer(BaseParameterServer):
    """The server that goes by this name; there is one kind of them."""


def key_of(port: int) -> bytes:
    """Returns the key of this process's server on that port."""
    if port not in _keys:
        raise ClusterError(
            f"`port` must be that of a server that was started in this program. Received: {port!r}. Start the server "
            "first, and make its clients on the driver: they carry its key to the workers."
        )
    return _keys[port]


class _Tcp(socketserver.ThreadingTCPServer):
    """Answers each client in its own thread."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], owner: BaseParameterServer) -> None:
        self._owner = owner
        self._connected: set[Any] = set()
        super().__init__(address, socketserver.BaseRequestHandler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(None)
        self._connected.add(request)
        with suppress(OSError, EOFError, AuthenticationError), Connection(request.dup().detach()) as connection:
            deadline = threading.Timer(_PATIENCE_SECONDS, _hang_up, [request])
            deadline.daemon = True
            deadline.start()
            deliver_challenge(connection, self._owner._key)
            answer_challenge(connection, self._owner._key)
            deadline.cancel()
            self._owner._answer(connection)
        self._connected.discard(request)

    def server_close(self) -> None:
        for request in list(self._connected):
            _hang_up(request)
        super().server_close()


def _hang_up(request: Any) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
