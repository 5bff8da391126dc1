"""Who may speak to a job's server. The driver makes the secrets; they reach workers in the task's closure only.

On loopback: ZeroMQ's PLAIN mechanism with a 256-bit password checked through ZAP. On a network: CURVE, encrypted,
with the job's one client key as the allow-list. Secrets are fresh for every job and never written to a log, a file
or an environment variable.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
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


def guard_server(socket: zmq.Socket[bytes], credentials: Credentials) -> ThreadAuthenticator:
    """Make `socket` refuse everyone without the job's secrets; stop what is returned before the context ends."""
    authenticator = ThreadAuthenticator(socket.context, log=_silent)
    authenticator.start()
    if credentials.password:
        authenticator.configure_plain(domain=_DOMAIN, passwords={_USER.decode(): credentials.password})
        socket.plain_server = True
    else:
        allowed = credentials.client_public.encode()
        authenticator.configure_curve_callback(domain=_DOMAIN, credentials_provider=_AllowOne(allowed))
        socket.curve_server = True
        socket.curve_secretkey = credentials.server_secret.encode()
        socket.curve_publickey = credentials.server_public.encode()
    socket.zap_domain = _DOMAIN.encode()
    return authenticator


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
