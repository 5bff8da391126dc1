"""The part of a host that a worker may use: cores, devices, memory. Runs on workers, before a framework is loaded.

Python workers are kept between jobs, so what one job claimed is set anew by the next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

# What the process was given before any job pinned it; read at first import, while the process is fresh.
_cores_at_start: tuple[int, ...] = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()

DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def pin(place: int, threads: int, workers_on_host: int) -> tuple[int, ...]:
    """Keep this process on its own cores; a lone worker, or one that finds too few cores, keeps them all."""
    cores = _cores_at_start
    if workers_on_host > 1 and workers_on_host * threads <= len(cores):
        cores = cores[place * threads : (place + 1) * threads]
    _set_affinity(cores)
    return cores


def unpin() -> None:
    """Let this process run on all the cores it started with."""
    _set_affinity(_cores_at_start)


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
