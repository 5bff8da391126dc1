"""Places for the workers of a cluster on one machine: addresses of the loopback, or hosts with a network of their own.

Loopback addresses need nothing. A host of its own is a network namespace, joined to the others by a bridge; it has its
own mark, by which processes on one host know each other, so that its members use the network as on a real cluster. Its
cable can be pulled. That needs root and `ip`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

# Addresses that are set aside for trials of networks; which 256 of them is drawn.
_NETWORK = "198.18"
# Runs a command with another identity of the machine than the one that the kernel tells.
_WITH_MARK = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"'


@dataclass(frozen=True)
class Host:
    """Where a worker runs: its address, and what is written before a command to run it there."""

    address: str
    prefix: tuple[str, ...] = ()
    cable: str | None = None


@dataclass(frozen=True)
class Hosts:
    """The driver's and the master's address, and the workers' hosts."""

    center: str
    workers: tuple[Host, ...]

    @property
    def have_cables(self) -> bool:
        """Whether a host can be cut off from the others."""
        return all(host.cable is not None for host in self.workers)


def on_loopback(count: int) -> Hosts:
    """Hosts 127.0.0.2, 127.0.0.3 and so on, with the center at 127.0.0.1."""
    return Hosts("127.0.0.1", tuple(Host(f"127.0.0.{number}") for number in range(2, 2 + count)))


def can_make_networks() -> bool:
    """Whether hosts with networks of their own can be made here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    try:
        with tempfile.TemporaryDirectory() as folder, on_networks(1, Path(folder)):
            return True
    except OSError:
        return False


@contextmanager
def on_networks(count: int, folder: Path) -> Iterator[Hosts]:
    """Hosts with a network of their own each, gone at the end; raises OSError where the system does not let us."""
    label = secrets.token_hex(3)
    network = f"{_NETWORK}.{secrets.randbelow(256)}"
    with ExitStack() as stack:
        bridge = f"kx{label}"
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{network}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        hosts = [_host(stack, f"kx{label}-{number}", bridge, network, number, folder) for number in range(count)]
        yield Hosts(f"{network}.1", tuple(hosts))


def pull_cable(host: Host) -> None:
    """Cut a host off: nothing reaches it, and nothing that it sends arrives. Nobody is told."""
    _ip("link", "set", _cable_of(host), "down")


def plug_cable(host: Host) -> None:
    """Join a host to the others again."""
    _ip("link", "set", _cable_of(host), "up")


def _host(stack: ExitStack, name: str, bridge: str, network: str, number: int, folder: Path) -> Host:
    cable, inside = f"{name}a", f"{name}b"
    address = f"{network}.{number + 2}"
    mark = folder / f"{name}.mark"
    mark.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    stack.callback(mark.unlink, missing_ok=True)
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("link", "add", cable, "type", "veth", "peer", "name", inside)
    _ip("link", "set", inside, "netns", name)
    _ip("link", "set", cable, "master", bridge)
    _ip("link", "set", cable, "up")
    _ip("-n", name, "addr", "add", f"{address}/24", "dev", inside)
    _ip("-n", name, "link", "set", inside, "up")
    _ip("-n", name, "link", "set", "lo", "up")
    return Host(address, ("ip", "netns", "exec", name, "sh", "-c", _WITH_MARK, "sh", str(mark)), cable)


def _cable_of(host: Host) -> str:
    if host.cable is None:
        raise ValueError(f"The host {host.address} is an address of the loopback and cannot be cut off.")
    return host.cable


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")
