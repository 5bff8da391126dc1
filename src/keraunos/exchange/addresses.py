"""Where a job's servers listen: socket files that only this user can reach, or TCP. Runs on driver and workers.

Where all of a job runs on one machine and as one user, its servers listen on socket files in a folder of mode 0700.
Nobody else can connect to them, or listen in the place of one that died. The driver makes the folder and removes it.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from keraunos import scratch
from keraunos.errors import ExchangeError

LOOPBACK = "127.0.0.1"

_FILE = "ipc://"
# The system takes a path of up to 107 characters for a socket; some are for the file's own name.
_LONGEST_FOLDER = 92
_PROBE_SECONDS = 2.0


def is_loopback(host: str) -> bool:
    """Whether `host` can only be reached from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_file(address: str) -> bool:
    """Whether an address is that of a socket file."""
    return address.startswith(_FILE)


@contextmanager
def socket_folder() -> Iterator[str | None]:
    """A private folder for socket files, removed in the end; `None` where its path is too long for them."""
    with scratch.folder("sockets") as folder:
        yield folder if len(folder) <= _LONGEST_FOLDER else None


def file_address(folder: str) -> str:
    """The address of a new socket file in a folder."""
    return f"{_FILE}{folder}/{secrets.token_hex(4)}"


def tcp_address(host: str, port: int | str) -> str:
    """An address for ZeroMQ; IPv6 addresses have brackets there."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def folder_of(address: str) -> str:
    """The folder of a socket file, which must be this user's own and closed to everyone else."""
    folder = Path(address.removeprefix(_FILE)).parent
    try:
        facts = folder.lstat()
    except OSError as error:
        raise ExchangeError(
            f"The server's socket file {address.removeprefix(_FILE)} is not there: {error.strerror}. The driver has "
            "ended, or this worker does not see the driver's temporary folder."
        ) from error
    if facts.st_uid != os.geteuid() or not stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o077:
        raise ExchangeError(
            f"The folder of the server's socket file must belong to this user alone. Received: {folder} of user "
            f"{facts.st_uid} with mode {stat.S_IMODE(facts.st_mode):o}, for user {os.geteuid()}."
        )
    return str(folder)


def connection_error(address: str) -> OSError | None:
    """What the system says where a connection cannot be made; `None` where it can."""
    try:
        if is_file(address):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBE_SECONDS)
                probe.connect(address.removeprefix(_FILE))
        else:
            parts = urlsplit(address)
            socket.create_connection((parts.hostname, parts.port), timeout=_PROBE_SECONDS).close()
    except OSError as error:
        return error
    return None


def is_refused(error: OSError | None) -> bool:
    """Whether the system says that nobody listens there; a process that stands still listens, as far as it knows.

    Of other errors, a full queue or a network that is cut, nothing can be concluded.
    """
    return isinstance(error, (ConnectionRefusedError, FileNotFoundError))


def needs_ipv6(address: str) -> bool:
    """Whether a server can only be reached by IPv6: where a name stands for both kinds, ZeroMQ tries one of them."""
    host = str(urlsplit(address).hostname)
    try:
        return not socket.getaddrinfo(host, None, socket.AF_INET)
    except OSError:
        return True


def own_address_towards(address: str) -> str:
    """This machine's own IP address on the way to a server; loopback stays loopback."""
    host = str(urlsplit(address).hostname)
    if is_loopback(host):
        return host
    family, kind, protocol, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        # Nothing is sent: connecting makes the system choose the interface.
        probe.connect(target)
        return str(probe.getsockname()[0])
