"""Ports of one address that are passed on to another, as a container's published ports are."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator

_AT_ONCE = 1 << 16
_WAITING = 64


@contextlib.contextmanager
def forwarded(ports: Iterable[int], outside: str, inside: str) -> Iterator[None]:
    """Connections to these ports of `outside` reach the same ports of `inside`."""
    with contextlib.ExitStack() as stack:
        for port in ports:
            listener = stack.enter_context(socket.create_server((outside, port), backlog=_WAITING))
            accepting = threading.Thread(target=_accept, args=(listener, inside, port), daemon=True)
            accepting.start()
            stack.callback(accepting.join)
            # Closing alone would not wake the thread that waits in `accept`.
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
        yield


def free_ports(host: str, count: int) -> list[int]:
    """Ports of an address that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server((host, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


def _accept(listener: socket.socket, inside: str, port: int) -> None:
    threads = []
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            break
        try:
            far = socket.create_connection((inside, port))
        except OSError:
            near.close()
            continue
        threads.append(threading.Thread(target=_join, args=(near, far), daemon=True))
        threads[-1].start()
    for each in threads:
        each.join()


def _join(near: socket.socket, far: socket.socket) -> None:
    """Pass on what comes from either side until both have ended."""
    with near, far:
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(_AT_ONCE):
            target.sendall(content)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
