"""Temporary folders that are removed even if their process is killed. Runs anywhere.

A process that is killed removes nothing. On a Spark worker temporary folders therefore lie in Spark's local directory,
which Spark removes with the executor. Elsewhere a process holds a lock on each of its folders. The system releases the
lock when the process ends, and the next fit of the same user removes the folders without a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

PREFIX = "keraunos-scratch-"

# The names of the folders of Spark's block manager, which passes them to a worker and removes them.
_OF_SPARK = "blockmgr-"


@contextlib.contextmanager
def folder(kind: str) -> Iterator[str]:
    """Create a folder that only this user can read; it is removed on exit. `kind` is a part of its name."""
    in_spark = spark_directory()
    with contextlib.ExitStack() as stack:
        if in_spark is not None:
            stack.enter_context(_default_directory(in_spark))
        yield _made(kind, stack)


def spark_directory() -> str | None:
    """Returns where a Spark worker may put files that Spark removes with the executor; `None` in any other process."""
    for path in os.environ.get("SPARK_LOCAL_DIRS", "").split(","):
        if Path(path).name.startswith(_OF_SPARK) and Path(path).is_dir() and os.access(path, os.W_OK):
            return path
    return None


def remove_abandoned() -> None:
    """Remove the folders of this user whose processes have ended without doing so."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_ours(path) and _remove_if_free(path):
                logger.info("%s was left by a process that is gone; it is removed.", path)


def _made(kind: str, stack: contextlib.ExitStack) -> str:
    while True:
        made = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{kind}-")
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(made.name, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            with contextlib.suppress(OSError):  # a file system without locks: no process removes the folder
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, made.name):
                return stack.enter_context(made)
        # Another process has removed it after its creation and before its lock.
        made.cleanup()


def _is_ours(path: Path) -> bool:
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()


def _remove_if_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(descriptor, str(path)):
            return False
        shutil.rmtree(path)
        return True
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Returns whether the folder that is open is still the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


@contextlib.contextmanager
def _default_directory(path: str) -> Iterator[None]:
    """Have all temporary files made there, also those of frameworks; a Spark worker has one thread that makes any."""
    before, tempfile.tempdir = tempfile.tempdir, path
    try:
        yield
    finally:
        tempfile.tempdir = before
