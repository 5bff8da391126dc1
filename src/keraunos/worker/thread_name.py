"""What an operator sees of a worker: its rank, in `top`, `ps` and `/proc`. Runs on workers and on executors.

All Python workers of Spark look alike from outside. A thread that trains a rank or serves a slice carries that as its
name while it does so; in a Spark task that thread is the process's first, and the name is the process's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OWN = Path("/proc/thread-self/comm")


def worker_name(rank: int) -> str:
    """The name of the thread that trains a rank; the system keeps 15 characters."""
    return f"keraunos-w{rank}"


def server_name(index: int) -> str:
    """The name of the thread that serves a slice in a task of its own."""
    return f"keraunos-s{index}"


@contextmanager
def thread_named(name: str) -> Iterator[None]:
    """The calling thread has that name in here, where the system lets threads have one (Linux)."""
    before = None
    with contextlib.suppress(OSError):
        before = _OWN.read_text(encoding="utf-8", errors="replace").strip()
        _OWN.write_text(name, encoding="ascii")
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                _OWN.write_text(before, encoding="utf-8")
