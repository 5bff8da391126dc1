"""Servers and clients by kind. Runs on the driver."""

from __future__ import annotations

from typing import Any, Self

from keraunos.compat.elephas.parameter.client import BaseParameterClient
from keraunos.compat.elephas.parameter.server import BaseParameterServer, HttpServer, SocketServer
from keraunos.compat.elephas.translate import check_server_mode


class ClientServerFactory:
    """Makes the server and the clients of one kind, 'http' or 'socket'."""

    def __init__(self, kind: str) -> None:
        check_server_mode(kind)
        self._kind = kind

    @classmethod
    def get_factory(cls, _type: str) -> Self:
        """Returns the factory of a kind."""
        return cls(_type)

    def create_client(self, port: int, *args: Any, **kwargs: Any) -> BaseParameterClient:
        """Returns a client of the server on that port, which must have been started."""
        return BaseParameterClient.get_client(self._kind, port, *args, **kwargs)

    def create_server(self, model: Any, port: int, mode: str, **kwargs: Any) -> BaseParameterServer:
        """Returns a server that `start` starts."""
        return (HttpServer if self._kind == "http" else SocketServer)(model, port, mode, **kwargs)
