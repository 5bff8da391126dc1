"""Clients of Elephas's parameter servers. Made on the driver; run wherever Spark's closures take them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Self

import numpy as np

from keraunos.compat.elephas.parameter.server import GET, UPDATE, key_of
from keraunos.compat.elephas.translate import check_server_mode
from keraunos.errors import ClusterError, DataError
from keraunos.parameters import Layout

_PATIENCE_SECONDS = 30.0


class BaseParameterClient:
    """Reads and changes the weights that a server holds.

    Args:
        port: the server's; it runs in the program that makes the client.
        host: where workers find it; by default `SPARK_LOCAL_IP`, or this machine.
    """

    client_type = "base"

    def __init__(self, port: int = 4000, host: str | None = None) -> None:
        self.port = port
        self.host = host or os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
        self._key = key_of(port)
        self._connection: tuple[Connection, Layout] | None = None

    @staticmethod
    def get_client(client_type: str, port: int = 4000) -> BaseParameterClient:
        """Returns the client of a kind, 'http' or 'socket'."""
        check_server_mode(client_type)
        return HttpClient(port) if client_type == "http" else SocketClient(port)

    def get_parameters(self) -> list[Any]:
        """Returns the weights, an array for each."""
        connection, layout = self._connected()
        connection.send_bytes(GET)
        return layout.split(np.frombuffer(connection.recv_bytes(), layout.dtype).copy())

    def update_parameters(self, delta: Sequence[Any]) -> None:
        """Subtract an update, an array for each weight: what it was before training minus what it was after it."""
        connection, layout = self._connected()
        shapes = tuple(np.shape(part) for part in delta)
        if shapes != layout.shapes:
            raise DataError(
                f"An update must have an array for each weight, of shapes {layout.shapes}. Received: {shapes}."
            )
        connection.send_bytes(UPDATE)
        connection.send_bytes(layout.join([np.asarray(part, layout.dtype) for part in delta]).tobytes())
        connection.recv_bytes(len(UPDATE))

    def close(self) -> None:
        """Hang up; the next call connects again."""
        connected, self._connection = self._connection, None
        if connected is not None:
            connected[0].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_connection": None}

    def _connected(self) -> tuple[Connection, Layout]:
        if self._connection is None:
            try:
                link = socket.create_connection((self.host, self.port), timeout=_PATIENCE_SECONDS)
            except OSError as error:
                raise ClusterError(f"No parameter server answers at {self.host}:{self.port}: {error}.") from error
            link.settimeout(None)
            connection = Connection(link.detach())
            answer_challenge(connection, self._key)
            deliver_challenge(connection, self._key)
            self._connection = connection, Layout.from_json(json.loads(connection.recv_bytes()))
        return self._connection


class HttpClient(BaseParameterClient):
    """The client that goes by this name; there is one kind of them."""

    client_type = "http"


class SocketClient(BaseParameterClient):
    """The client that goes by this name; there is one kind of them."""

    client_type = "socket"
