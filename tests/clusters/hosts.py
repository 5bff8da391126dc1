"""Places for the workers of a cluster on one machine: addresses of the loopback, or hosts with a network of their own.

Loopback addresses need nothing. A host of its own is a network namespace, joined to the others by a bridge; it has its
own mark, by which processes on one host know each other, so that its members use the network as on a real cluster. It
has an IPv4 and an IPv6 address, it knows the center by a name for both, and its cable can be pulled. A driver may stand
apart, where workers cannot reach its own address. All that needs root and `ip`.
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
_NETWORK_APART = "198.19"
# The same for IPv6: addresses that nobody routes.
_NETWORK_6 = "fd6b"
# Runs a command with another identity of the machine than the one that the kernel tells, and with names of its own.
_WITH_MARK = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'
# What workers with a network of their own may call the center.
CENTER_NAME = "center.keraunos.test"


@dataclass(frozen=True)
class Host:
    """Where a worker runs: its address, and what is written before a command to run it there."""

    address: str
    prefix: tuple[str, ...] = ()
    cable: str | None = None
    address_6: str | None = None


@dataclass(frozen=True)
class Hosts:
    """The driver's and the master's address, and the workers' hosts."""

    center: str
    workers: tuple[Host, ...]
    center_6: str | None = None

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
    network = _Network(f"kx{label}", f"{_NETWORK}.{secrets.randbelow(256)}", f"{_NETWORK_6}:{secrets.token_hex(2)}:")
    with ExitStack() as stack:
        _ip("link", "add", network.bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", network.bridge)
        _give(network.bridge, network, 1)
        hosts = [_host(stack, network, number, folder) for number in range(count)]
        yield Hosts(network.address(1), tuple(hosts), network.address_6(1))


@contextmanager
def apart() -> Iterator[Host]:
    """A host that reaches this machine, and nothing beyond it; no worker reaches its address."""
    name = f"ka{secrets.token_hex(3)}"
    network = _Network(name, f"{_NETWORK_APART}.{secrets.randbelow(256)}", f"{_NETWORK_6}:{secrets.token_hex(2)}:")
    with ExitStack() as stack:
        _ip("netns", "add", name)
        stack.callback(_ip, "netns", "del", name)
        outside, inside = f"{name}a", f"{name}b"
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
        _ip("link", "set", inside, "netns", name)
        _give(outside, network, 1)
        _give(inside, network, 2, "-n", name)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "route", "add", "default", "via", network.address(1))
        yield Host(network.address(2), ("ip", "netns", "exec", name))


def pull_cable(host: Host) -> None:
    """Cut a host off: nothing reaches it, and nothing that it sends arrives. Nobody is told."""
    _ip("link", "set", _cable_of(host), "down")


def plug_cable(host: Host) -> None:
    """Join a host to the others again."""
    _ip("link", "set", _cable_of(host), "up")


@dataclass(frozen=True)
class _Network:
    bridge: str
    prefix: str
    prefix_6: str

    def address(self, number: int) -> str:
        return f"{self.prefix}.{number}"

    def address_6(self, number: int) -> str:
        return f"{self.prefix_6}:{number}"


def _host(stack: ExitStack, network: _Network, number: int, folder: Path) -> Host:
    name = f"{network.bridge}-{number}"
    cable, inside = f"{name}a", f"{name}b"
    mark = folder / f"{name}.mark"
    mark.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    names = folder / f"{name}.hosts"
    centers = [f"{network.address(1)} {CENTER_NAME}", f"{network.address_6(1)} {CENTER_NAME}"]
    names.write_text("\n".join(["127.0.0.1 localhost", *centers, ""]), encoding="ascii")
    for each in (mark, names):
        stack.callback(each.unlink, missing_ok=True)
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("link", "add", cable, "type", "veth", "peer", "name", inside)
    _ip("link", "set", inside, "netns", name)
    _ip("link", "set", cable, "master", network.bridge)
    _ip("link", "set", cable, "up")
    _give(inside, network, number + 2, "-n", name)
    _ip("-n", name, "link", "set", "lo", "up")
    prefix = ("ip", "netns", "exec", name, "sh", "-c", _WITH_MARK, "sh", str(mark), str(names))
    return Host(network.address(number + 2), prefix, cable, network.address_6(number + 2))


def _give(device: str, network: _Network, number: int, *where: str) -> None:
    """Give a device its addresses; `where` names its namespace."""
    _ip(*where, "addr", "add", f"{network.address(number)}/24", "dev", device)
    _ip(*where, "addr", "add", f"{network.address_6(number)}/64", "dev", device, "nodad")
    _ip(*where, "link", "set", device, "up")


def _cable_of(host: Host) -> str:
    if host.cable is None:
        raise ValueError(f"The host {host.address} is an address of the loopback and cannot be cut off.")
    return host.cable


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")
