"""Who may speak to a job's server. The driver makes the secrets; they reach workers in the task's closure only.

Every message carries a keyed hash that only holders of the job's 256-bit secret can make; the secret itself is never
sent. On a network, and wherever a server listens on a port, connections speak CURVE besides: encrypted, both sides
authenticated, with the job's one client key as the allow-list. Socket files need no more: only this user's processes
reach them. Secrets are fresh for every job and never written to a log, a file or an environment variable.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import zmq

from keraunos.exchange.key_check import KeyCheck

_DOMAIN = b"keraunos"


@dataclass(frozen=True, repr=False)
class Credentials:
    """The secrets of one job; the keys of CURVE are empty strings where servers listen on socket files."""

    secret: str
    server_public: str = ""
    server_secret: str = ""
    client_public: str = ""
    client_secret: str = ""

    @classmethod
    def fresh(cls, *, encrypted: bool) -> Credentials:
        """New secrets for a job whose servers listen on ports, or without encryption on socket files."""
        secret = secrets.token_hex(32)
        return cls(secret, *_key_pair(), *_key_pair()) if encrypted else cls(secret)

    def for_slice(self) -> Credentials:
        """What the server of a slice uses: the job's own clients may speak to it; its key is its own.

        Called where the server runs, which holds only what `for_client` gave.
        """
        if not self.encrypted:
            return self
        return Credentials(self.secret, *_key_pair(), self.client_public, self.client_secret)

    @property
    def encrypted(self) -> bool:
        """Whether connections speak CURVE."""
        return bool(self.client_public)

    @property
    def seal_key(self) -> bytes:
        """What seals messages, so that a damaged or made-up one is known as such."""
        return self.secret.encode()

    def for_client(self) -> dict[str, Any]:
        """What a worker needs, as plain data: never the server's secret key."""
        return asdict(self) | {"server_secret": ""}

    def __repr__(self) -> str:
        return "Credentials(…)"


@dataclass(frozen=True)
class Guarded:
    """A ZeroMQ context, and the thread that checks keys for it, where there are some."""

    context: zmq.Context[zmq.Socket[bytes]]
    threads: tuple[threading.Thread, ...] = ()


@contextmanager
def guarded_context(credentials: Credentials) -> Iterator[Guarded]:
    """A ZeroMQ context in which armed sockets refuse everyone without the job's keys."""
    with zmq.Context() as context:
        if not credentials.encrypted:
            yield Guarded(context)
            return
        with KeyCheck(context, credentials.client_public) as check:
            yield Guarded(context, (check.thread,))


def arm_server(socket: zmq.Socket[bytes], credentials: Credentials) -> None:
    """Make `socket` refuse everyone else: other users, or with CURVE whoever lacks the job's key."""
    if not credentials.encrypted:
        # The folder keeps them out already; this holds where somebody opens it.
        socket.setsockopt(zmq.IPC_FILTER_UID, os.geteuid())
        return
    socket.curve_server = True
    socket.curve_secretkey = credentials.server_secret.encode()
    socket.curve_publickey = credentials.server_public.encode()
    socket.zap_domain = _DOMAIN


def arm_client(socket: zmq.Socket[bytes], credentials: Credentials) -> None:
    """Give `socket` the job's keys, where there are some."""
    if credentials.encrypted:
        socket.curve_serverkey = credentials.server_public.encode()
        socket.curve_publickey = credentials.client_public.encode()
        socket.curve_secretkey = credentials.client_secret.encode()


def _key_pair() -> tuple[str, str]:
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()
