"""The file system interface of a checkpoint store, and its implementation for local files. Runs on the driver."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

# The errors of a file system that cannot flush a folder; it then has nothing to flush.
_NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


@dataclass(frozen=True)
class Status:
    """The owner of a file or a folder, and its permissions as the bits of `chmod`."""

    owner: str
    mode: int


@dataclass(frozen=True)
class Owned:
    """A file's content, with the status of that very file and of the folder that it was read from.

    Attributes:
        reader: the user who reads, by a name that an owner could have.
    """

    content: bytes
    file: Status
    folder: Status
    reader: str


class Folder(Protocol):
    """A folder that may not exist yet. Names are relative to it, with `/` before what lies in a sub-folder.

    Failures raise `OSError`. One thread writes; others may read meanwhile.
    """

    @property
    def path(self) -> str:
        """Where it is, for messages."""

    def make(self, name: str = "") -> None:
        """Make a sub-folder, or the folder itself, and its missing parents; an existing one is not changed."""

    def write(self, name: str, buffers: Iterable[memoryview | bytes]) -> None:
        """Write a new file in a folder that exists, from buffers in their order."""

    def write_private(self, name: str, content: bytes) -> None:
        """Write a new file that only its owner may read and write, if the file system has owners."""

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Returns a file to read; one that is missing is a `FileNotFoundError`."""

    def read_owned(self, name: str) -> Owned:
        """Returns a small file directly in the folder, and whose it is."""

    def names(self) -> list[str]:
        """Returns the names directly in the folder; nothing while it does not exist."""

    def rename(self, name: str, new: str) -> None:
        """Rename a file or sub-folder atomically; the new name must not exist.

        Its content is at least as durable as its new name. A file system without atomic renames moves it file by file;
        a reader may then find a part.
        """

    def delete(self, name: str) -> None:
        """Delete a file, or a sub-folder with its content. Ignored if it is missing."""


class LocalFolder:
    """A folder of local files. They and their names are flushed to the disk before a rename."""

    def __init__(self, path: str | Path) -> None:
        self._root = Path(path)

    @property
    def path(self) -> str:
        """Where it is, for messages."""
        return str(self._root)

    def make(self, name: str = "") -> None:
        """Make a sub-folder, or the folder itself."""
        folder = self._root / name
        made = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in made:
            _flush_folder(each.parent)

    def write(self, name: str, buffers: Iterable[memoryview | bytes]) -> None:
        """Write a new file, and wait until it is on the disk."""
        write_file(self._root / name, buffers)

    def write_private(self, name: str, content: bytes) -> None:
        """Write a new file that only its owner may read and write."""
        write_file(self._root / name, [content], mode=0o600)

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Returns a file to read."""
        return (self._root / name).open("rb")

    def read_owned(self, name: str) -> Owned:
        """Returns a file, and whose it is.

        A link is refused; the file cannot be replaced between the check and the read.
        """
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:  # noqa: PTH123 - by descriptor
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "it is not a plain file", str(self._root / name))
                return Owned(file.read(), _status(status), _status(os.fstat(folder)), str(os.getuid()))
        finally:
            os.close(folder)

    def names(self) -> list[str]:
        """Returns the names directly in the folder."""
        try:
            return os.listdir(self._root)  # noqa: PTH208 - names are asked for, not paths
        except FileNotFoundError:
            return []

    def rename(self, name: str, new: str) -> None:
        """Rename a file or sub-folder atomically."""
        source, target = self._root / name, self._root / new
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        if source.is_dir():
            _flush_folder(source)
        source.rename(target)
        _flush_folder(target.parent)

    def delete(self, name: str) -> None:
        """Delete a file, or a sub-folder with all that is in it."""
        target = self._root / name
        try:
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink()
        except (FileNotFoundError, NotADirectoryError):
            pass


def write_file(path: Path, buffers: Iterable[memoryview | bytes], mode: int = 0o666) -> None:
    """Write a new local file and wait until it is on the disk; errors name the file."""
    try:
        with open(path, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, mode)) as file:
            for buffer in buffers:
                _write_all(file.fileno(), memoryview(buffer).cast("B"))
            os.fsync(file.fileno())
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _status(found: os.stat_result) -> Status:
    return Status(str(found.st_uid), stat.S_IMODE(found.st_mode))


def _write_all(descriptor: int, view: memoryview) -> None:
    """Write a whole buffer: one system call may write only a part if the buffer is large or the disk is nearly full."""
    while view:
        view = view[os.write(descriptor, view) :]


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise
    finally:
        os.close(descriptor)
