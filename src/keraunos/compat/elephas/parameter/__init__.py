"""Elephas's parameter servers and their clients, for programs that run their own.

`SparkModel.fit` does not use them: it has the engine's servers, which are sharded, encrypted on a network and apply
every update exactly once.
"""

from keraunos.compat.elephas.parameter.client import BaseParameterClient, HttpClient, SocketClient
from keraunos.compat.elephas.parameter.factory import ClientServerFactory
from keraunos.compat.elephas.parameter.server import BaseParameterServer, HttpServer, SocketServer

__all__ = [
    "BaseParameterClient",
    "BaseParameterServer",
    "ClientServerFactory",
    "HttpClient",
    "HttpServer",
    "SocketClient",
    "SocketServer",
]
