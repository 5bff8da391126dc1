"""The part of a host that a worker may use: cores, devices, memory. Runs on workers, before a framework is loaded.

Python workers are kept between jobs, so what one job claimed is set anew by the next.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

# What the process was given before any job pinned it; read at first import, while the process is fresh.
_cores_at_start: tuple[int, ...] = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()

CORE_NAME = "keraunos-core"
DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@contextmanager
def cores(threads: int) -> Iterator[tuple[int, ...]]:
    """Keep this process on that many cores that no other worker of this host has; on all where so many are not free.

    A core is taken by binding a name in the kernel's own namespace of socket names: no two processes can have it, and
    it is free again when its holder ends, however it ends.
    """
    with ExitStack() as held:
        taken: list[int] = []
        for core in _cores_at_start:
            if len(taken) < threads and _take(core, held):
                taken.append(core)
        if len(taken) < threads:
            held.close()
            taken = list(_cores_at_start)
        _set_affinity(taken)
        try:
            yield tuple(taken)
        finally:
            unpin()


def task_threads() -> int:
    """How many threads this process was told to use, which is how many cores its Spark task has."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdigit() and int(told) else 1


def unpin() -> None:
    """Let this process run on all the cores it started with."""
    _set_affinity(_cores_at_start)


def _take(core: int, held: ExitStack) -> bool:
    name = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    try:
        name.bind(f"\0{CORE_NAME}-{core}")
    except OSError:
        return False
    return True


def show_devices(addresses: Sequence[str]) -> None:
    """Make the accelerators that Spark gave to this task the only ones a framework sees."""
    for name in DEVICE_VARIABLES:
        os.environ[name] = ",".join(addresses)


def memory_budget(asked: int | None, workers_on_host: int) -> int:
    """How many bytes of rows a worker keeps in memory before it maps them from disk."""
    if asked is not None:
        return asked
    return max(64 << 20, _available_memory() // 2 // max(1, workers_on_host))


def spool_directory() -> str | None:
    """Where rows go that do not fit: the first of Spark's local directories, else the system's temporary one."""
    for path in os.environ.get("SPARK_LOCAL_DIRS", "").split(","):
        if path and Path(path).is_dir() and os.access(path, os.W_OK):
            return path
    return None


def _set_affinity(cores: Sequence[int]) -> None:
    if not cores or not hasattr(os, "sched_setaffinity"):
        return
    # Affinity belongs to threads; a framework's pool from an earlier job has threads of its own.
    tasks = Path("/proc/self/task")
    for thread in tasks.iterdir() if tasks.is_dir() else [Path("0")]:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread.name), cores)


def _available_memory() -> int:
    found = [
        _from_meminfo(),
        *map(_from_limit, ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")),
    ]
    known = [value for value in found if value is not None]
    return min(known) if known else 1 << 30


def _from_meminfo() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _from_limit(path: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(path).read_text(encoding="ascii"))
    return None
