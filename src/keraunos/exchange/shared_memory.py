"""Vectors that two processes on one host both see, so that large buffers need not cross a socket.

Runs on the driver (which creates a region) and on workers (which open it). A region is an anonymous memory file:
it has no name in any file system, so there is nothing to clean up however a process ends. Another process of the
same user reaches it through the creator's entry in /proc. Where that fails (another host, another container,
another user, not Linux) the vector travels over the socket instead.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from keraunos.parameters import Vector

# The region starts with a random mark: a process number may mean another process in another container.
_MARK_BYTES = 64


def host_mark() -> str | None:
    """What is equal for two processes that may share memory; `None` where sharing is not possible at all."""
    if not sys.platform.startswith("linux") or not hasattr(os, "memfd_create"):
        return None
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return None


class SharedVector:
    """A vector in shared memory; `offer` is what the other side needs to open it."""

    def __init__(self, descriptor: int, mark: str, length: int, dtype: str, owner: int) -> None:
        self.offer: dict[str, Any] = {
            "pid": owner,
            "descriptor": descriptor,
            "mark": mark,
            "length": length,
            "dtype": dtype,
        }
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _MARK_BYTES + max(1, length) * np.dtype(dtype).itemsize)
        self.vector: Vector = np.frombuffer(self._memory, dtype=dtype, count=length, offset=_MARK_BYTES)

    @classmethod
    def create(cls, length: int, dtype: str) -> Self:
        """A new region of zeros, owned by this process."""
        mark = secrets.token_hex(_MARK_BYTES // 2)
        descriptor = os.memfd_create("keraunos")
        try:
            os.ftruncate(descriptor, _MARK_BYTES + max(1, length) * np.dtype(dtype).itemsize)
            os.pwrite(descriptor, mark.encode(), 0)
            return cls(descriptor, mark, length, dtype, os.getpid())
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def open(cls, offer: Mapping[str, Any]) -> Self | None:
        """The region that was offered, or `None` where it cannot be reached from this process."""
        try:
            descriptor = os.open(f"/proc/{int(offer['pid'])}/fd/{int(offer['descriptor'])}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if os.pread(descriptor, _MARK_BYTES, 0) == offer["mark"].encode():
                return cls(descriptor, offer["mark"], int(offer["length"]), str(offer["dtype"]), int(offer["pid"]))
        except (OSError, ValueError):
            pass
        os.close(descriptor)
        return None

    def close(self) -> None:
        """Give the memory back; views that are still held keep it mapped until they are gone."""
        self.vector = np.empty(0, dtype=self.vector.dtype)
        with contextlib.suppress(BufferError):
            self._memory.close()
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
