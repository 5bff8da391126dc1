"""What a store of checkpoints needs of a file system, and the one with plain files. Runs on the driver."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol

# A file system that cannot flush a folder says so with one of these; it has nothing to flush then.
_NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


class Folder(Protocol):
    """A folder that may not exist yet. Names are relative to it, with `/` before what lies in a sub-folder.

    What goes wrong is an `OSError`. One thread writes; others may read meanwhile.
    """

    @property
    def path(self) -> str:
        """Where it is, for messages."""

    def make(self, name: str = "") -> None:
        """Make a sub-folder, or the folder itself, with what is missing above it; one that exists is left as it is."""

    def write(self, name: str, buffers: Iterable[memoryview | bytes]) -> None:
        """Write a new file in a folder that exists, from buffers in their order."""

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to read; one that is missing is a `FileNotFoundError`."""

    def names(self) -> list[str]:
        """What lies directly in the folder; nothing while it does not exist."""

    def rename(self, name: str, new: str) -> None:
        """Give a file or sub-folder its new name at once; there must be nothing of that name.

        What was written in it before is as lasting as its new name. A file system without such a rename does it file by
        file; a reader then may find a part.
        """

    def delete(self, name: str) -> None:
        """Delete a file, or a sub-folder with all that is in it; one that is missing is deleted already."""


class LocalFolder:
    """A folder of plain files. They and their names are on the disk, not in a cache, before a rename is."""

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
        """Write a new file, and wait until the disk has it."""
        write_file(self._root / name, buffers)

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to read."""
        return (self._root / name).open("rb")

    def names(self) -> list[str]:
        """What lies directly in the folder."""
        try:
            return os.listdir(self._root)  # noqa: PTH208 - names are asked for, not paths
        except FileNotFoundError:
            return []

    def rename(self, name: str, new: str) -> None:
        """Give a file or sub-folder its new name at once."""
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


def write_file(path: Path, buffers: Iterable[memoryview | bytes]) -> None:
    """Write a new plain file and wait until the disk has it; what goes wrong names the file."""
    try:
        with path.open("xb", buffering=0) as file:
            for buffer in buffers:
                _write_all(file.fileno(), memoryview(buffer).cast("B"))
            os.fsync(file.fileno())
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _write_all(descriptor: int, view: memoryview) -> None:
    """One call of the system may take a part only: of a large buffer, or where the disk is nearly full."""
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
