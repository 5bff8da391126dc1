"""Makes the time between two tasks short. Runs on Spark's Python workers.

A Python worker of Spark's collects garbage after each task, and a collection looks at every object that is not frozen.
A framework brings hundreds of thousands which live as long as the process: with TensorFlow loaded, a task that does
nothing takes 0.2 s of CPU for it. So what is alive after such a collection is frozen, and the next one looks only at
what has come since.

What is frozen may become garbage that only a collection finds. So all of it is looked at again after every 64th task,
when a model was given up (`look_at_all`), and when the process has grown.

Spark sends a task to a worker in several small pieces, each after the acknowledgement of the one before, which Linux
delays by 40 ms on a connection whose two sides take turns. So the worker asks for immediate acknowledgements again
before each task.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

# A whole collection is shared by so many tasks.
MOST_TASKS = 64
# What a worker may grow by, in bytes and as a share, before it is looked whether that is garbage.
_GROWTH, _GROWTH_SHARE = 64 << 20, 0.1

_WHOLE = 2
# Spark says so to the process that it forks its workers from; one that is not used again collects nothing.
_REUSED = "SPARK_REUSE_WORKER"


def keep_cheap() -> None:
    """Begin, in a Python worker of Spark's; in any other process this does nothing."""
    if os.environ.get(_REUSED) and _watch not in gc.callbacks:
        gc.callbacks.append(_watch)


def cheaply(records: Iterable[Any]) -> Iterable[Any]:
    """Records of a partition as they are, in a Python worker that does nothing else of ours."""
    keep_cheap()
    return records


def look_at_all() -> None:
    """Have the next collection after a task look at everything: something large was given up."""
    _frozen.look_at_all()


class Frozen:
    """Which collections are to look at what is frozen; told of each that comes after a task."""

    def __init__(self, memory: Callable[[], int]) -> None:
        self._memory = memory
        self._tasks = 0
        self._base = 0
        self._all = False

    def look_at_all(self) -> None:
        """The next collection looks at everything."""
        self._all = True

    def begin(self) -> None:
        """A collection begins."""
        self._tasks += 1
        grown = self._memory() - self._base > _GROWTH + _GROWTH_SHARE * self._base
        self._all = self._all or grown or self._tasks >= MOST_TASKS
        if self._all:
            gc.unfreeze()

    def end(self) -> None:
        """It has ended: there is no garbage in what is alive."""
        gc.freeze()
        if self._all:
            self._all, self._tasks, self._base = False, 0, self._memory()


def resident_bytes() -> int:
    """The memory of this process, 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def acknowledge_at_once(connection: Any) -> None:
    """Have the next data that comes over this connection acknowledged without delay; Linux forgets it after a while."""
    if hasattr(socket, "TCP_QUICKACK") and getattr(connection, "family", None) in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


_frozen = Frozen(resident_bytes)


def _watch(phase: str, info: Mapping[str, Any]) -> None:
    daemon = _daemon_after_a_task() if info["generation"] == _WHOLE else None
    if daemon is None:
        return
    if phase == "start":
        _frozen.begin()
    else:
        _frozen.end()
        acknowledge_at_once(daemon.f_locals.get("sock"))


def _daemon_after_a_task() -> FrameType | None:
    """PySpark's daemon, if it is what collects: then there is nothing of a task left but what it has put away."""
    caller = sys._getframe(1).f_back
    if caller is None:  # the interpreter itself collects, when it ends
        return None
    code = caller.f_code
    is_daemon = code.co_name == "manager" and Path(code.co_filename).parts[-2:] == ("pyspark", "daemon.py")
    return caller if is_daemon else None
