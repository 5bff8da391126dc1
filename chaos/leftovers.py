"""What a fit may leave behind on the machine: processes, temporary files and sockets, shared memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.clusters.processes import Process
from tests.clusters.standalone import StandaloneCluster

_SHARED_MEMORY = Path("/dev/shm")
_SHARED = "memfd:keraunos"


def shared_memory() -> frozenset[str]:
    """The named segments of shared memory on this machine that this project may have made."""
    return frozenset(path.name for path in _SHARED_MEMORY.glob("*keraunos*"))


def left_by_fit(cluster: StandaloneCluster, before: frozenset[str] = frozenset()) -> list[str]:
    """What is there although no fit runs; `before` are the segments of shared memory that were there before it."""
    members = cluster.members()
    busy = [each for each in members if each.name.startswith("keraunos-")]
    left = [f"{each} (child of {each.parent})" for each in busy]
    left += _descriptors(members)
    left += [f"shared memory {name}" for name in sorted(shared_memory() - before)]
    return left + left_files(cluster)


def left_files(cluster: StandaloneCluster) -> list[str]:
    """Temporary folders, with the sockets in them; not the cache of compiled programs, which is to stay."""
    return [str(path) for path in cluster.temporary.glob("keraunos*") if "cache" not in path.name]


def _descriptors(members: Iterable[Process]) -> list[str]:
    """Shared memory that has no name, and that a process holds."""
    left = []
    for process in members:
        try:
            held = sum(_SHARED in str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir())
        except OSError:
            continue  # it ended, or closed a file, while it was looked at: the next look tells
        if held:
            left.append(f"{held} regions of shared memory of {process}")
    return left
