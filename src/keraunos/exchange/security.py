"""Who may speak to a job's server. The driver makes the secrets; they reach workers in the task's closure only.

On loopback: ZeroMQ's PLAIN mechanism with a 256-bit password checked through ZAP. On a network: CURVE, encrypted,
with the job's one client key as the allow-list. Secrets are fresh for every job and never written to a log, a file
or an environment variable.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import zmq
from zmq.auth.thread import ThreadAuthenticator

_DOMAIN = "keraunos"
_USER = b"worker"

# The authenticator writes passwords to its log at debug level, so it gets a log that writes nothing.
_silent = logging.getLogger(f"{__name__}.zap")
_silent.disabled = True


@dataclass(frozen=True, repr=False)
class Credentials:
    """The secrets of one job; empty strings for the mechanism that is not in use."""

    password: str = ""
    server_public: str = ""
    server_secret: str = ""
    client_public: str = ""
    client_secret: str = ""

    @classmethod
    def fresh(cls, host: str) -> Credentials:
        """New secrets for a server that is bound to `host`."""
        if is_loopback(host):
            return cls(password=secrets.token_hex(32))
        server_public, server_secret = (key.decode() for key in zmq.curve_keypair())
        client_public, client_secret = (key.decode() for key in zmq.curve_keypair())
        return cls("", server_public, server_secret, client_public, client_secret)

    def for_slice(self, host: str) -> Credentials:
        """What the server of a slice uses on `host`: the job's own clients may speak to it; its key is its own.

        Called where the server runs, which holds only what `for_client` gave.
        """
        if is_loopback(host) and self.password:
            return self
        server_public, server_secret = (key.decode() for key in zmq.curve_keypair())
        return Credentials("", server_public, server_secret, self.client_public, self.client_secret)

    @property
    def seal_key(self) -> bytes:
        """What seals messages, so that a damaged or made-up one is known as such."""
        return (self.password or self.client_secret).encode()

    def for_client(self) -> dict[str, Any]:
        """What a worker needs, as plain data: never the server's secret key."""
        return asdict(self) | {"server_secret": ""}

    def __repr__(self) -> str:
        return "Credentials(…)"


def is_loopback(host: str) -> bool:
    """Whether `host` can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def guarded_context(credentials: Credentials) -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """A ZeroMQ context in which armed sockets refuse everyone without the job's secrets."""
    with zmq.Context() as context:
        authenticator = ThreadAuthenticator(context, log=_silent)
        authenticator.start()
        try:
            if credentials.password:
                authenticator.configure_plain(domain=_DOMAIN, passwords={_USER.decode(): credentials.password})
            else:
                allowed = credentials.client_public.encode()
                authenticator.configure_curve_callback(domain=_DOMAIN, credentials_provider=_AllowOne(allowed))
            yield context
        finally:
            authenticator.stop()


def arm_server(socket: zmq.Socket[bytes], credentials: Credentials) -> None:
    """Make `socket` ask for the job's secrets."""
    if credentials.password:
        socket.plain_server = True
    else:
        socket.curve_server = True
        socket.curve_secretkey = credentials.server_secret.encode()
        socket.curve_publickey = credentials.server_public.encode()
    socket.zap_domain = _DOMAIN.encode()


def arm_client(socket: zmq.Socket[bytes], credentials: Credentials) -> None:
    """Give `socket` the job's secrets."""
    if credentials.password:
        socket.plain_username = _USER
        socket.plain_password = credentials.password.encode()
    else:
        socket.curve_serverkey = credentials.server_public.encode()
        socket.curve_publickey = credentials.client_public.encode()
        socket.curve_secretkey = credentials.client_secret.encode()


class _AllowOne:
    """The allow-list of a job: its one client key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def callback(self, domain: str, key: bytes) -> bool:
        """What the ZAP handler asks for each connection; the key arrives in its 40-character form."""
        return secrets.compare_digest(key, self._key)
