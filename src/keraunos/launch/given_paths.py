"""Files and folders where a program says that they are: on this machine, or on any file system that Hadoop knows.

Runs on the driver. A plain path and a `file:` address are this machine's own, and need no Spark. Whatever else has a
scheme, such as `hdfs://`, `viewfs://` and `s3a://`, is read and written by Hadoop's own FileSystem. Code that wants
a local file, as Keras's and TensorFlow's does, gets one from `local` and `written`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from keraunos import scratch
from keraunos.errors import JobError

if TYPE_CHECKING:
    from keraunos.session.hadoop_files import HadoopFolder

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# `file:/a`, `file:///a` and `file://localhost/a` are one file.
_FILE = re.compile(r"file:(//(localhost)?)?(?=/(?!/))", re.IGNORECASE)


def given_path(
    path: str | os.PathLike[str], argument: str = "path", *, spark: Any = None, plain_by_hadoop: bool = False
) -> GivenPath:
    """The file or folder at a path, which need not exist.

    Args:
        path: a plain path, or an address with a scheme.
        argument: what an error calls the path.
        spark: the session or context that knows Hadoop; by default the program's session, made where there is none.
        plain_by_hadoop: whether a plain path is one of Hadoop's default file system.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise JobError(f"`{argument}` must be a path of a file or a folder. Received: {path!r}.")
    scheme = _SCHEME.match(text)
    if scheme is None and not plain_by_hadoop and not text.lower().startswith("file:"):
        return LocalPath(text, Path(text).expanduser())
    local = _FILE.match(text)
    if local is not None:
        return LocalPath(text, Path(text[local.end() :]))
    folder = _hadoop_folder(text, argument, spark)
    own = folder.local_path  # where Hadoop's default file system is this machine's
    return HadoopPath(text, folder) if own is None else LocalPath(text, Path(own))


class GivenPath(ABC):
    """A file or a folder. What cannot be read or written raises an `OSError`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    @property
    def local_path(self) -> Path | None:
        """The path on this machine; `None` elsewhere."""
        return None

    @abstractmethod
    def parent(self) -> Self:
        """The folder that this lies in."""

    @abstractmethod
    def child(self, name: str) -> Self:
        """A file or folder in this folder."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is something."""

    @abstractmethod
    def is_folder(self) -> bool:
        """Whether there is a folder."""

    @abstractmethod
    def names(self) -> list[str]:
        """What lies directly in the folder; nothing where there is none."""

    @abstractmethod
    def read(self) -> bytes:
        """The whole content of the file."""

    @abstractmethod
    def delete(self) -> None:
        """Delete the file, if there is one."""

    @abstractmethod
    def local(self) -> Any:
        """A context with a local path of the file, or of the folder with all that is in it, to read."""

    @abstractmethod
    def local_prefix(self) -> Any:
        """A context with a local path that is a prefix of the same files, to read: a checkpoint of TensorFlow's."""

    @abstractmethod
    def written(self) -> Any:
        """A context with a local path to write to: a file, a folder, or files whose names begin so.

        When it ends each file is put in its place, where it replaces one of the same name; others stay. An error in the
        context, or before all files are where they can be renamed, leaves everything as it was. Folders are made.
        """

    def replace(self, content: bytes) -> None:
        """Write the file, or another content for it."""
        with self.written() as path:
            path.write_bytes(content)


class LocalPath(GivenPath):
    """A file or folder of this machine."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self._path = path

    @property
    def local_path(self) -> Path:
        """The path."""
        return self._path

    def parent(self) -> LocalPath:
        """The folder that this lies in."""
        return LocalPath(str(self._path.parent), self._path.parent)

    def child(self, name: str) -> LocalPath:
        """A file or folder in this folder."""
        return LocalPath(f"{self.text.rstrip('/')}/{name}", self._path / name)

    def exists(self) -> bool:
        """Whether there is something."""
        return self._path.exists()

    def is_folder(self) -> bool:
        """Whether there is a folder."""
        return self._path.is_dir()

    def names(self) -> list[str]:
        """What lies directly in the folder."""
        return sorted(each.name for each in self._path.iterdir()) if self._path.is_dir() else []

    def read(self) -> bytes:
        """The whole content of the file."""
        return self._path.read_bytes()

    def delete(self) -> None:
        """Delete the file, if there is one."""
        self._path.unlink(missing_ok=True)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """The path itself."""
        yield self._path

    @contextmanager
    def local_prefix(self) -> Iterator[Path]:
        """The path itself."""
        yield self._path

    @contextmanager
    def written(self) -> Iterator[Path]:
        """A path beside, on the same file system, from where files are renamed."""
        place = Path(os.path.realpath(self._path))
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".keraunos-", dir=place.parent) as aside:
            fresh = Path(aside, place.name)
            yield fresh
            _put_in_place(Path(aside), place.parent)


class HadoopPath(GivenPath):
    """A file or folder on a file system that Hadoop knows. Local paths are those of temporary copies."""

    def __init__(self, text: str, folder: HadoopFolder) -> None:
        super().__init__(text)
        self._folder = folder

    def parent(self) -> HadoopPath:
        """The folder that this lies in."""
        folder = self._folder.parent()
        return HadoopPath(folder.uri, folder)

    def child(self, name: str) -> HadoopPath:
        """A file or folder in this folder."""
        text = f"{self.text.rstrip('/')}/{name}"
        return HadoopPath(text, self._folder.child(name))

    def exists(self) -> bool:
        """Whether there is something."""
        with _os_errors(self.text):
            return self._folder.exists()

    def is_folder(self) -> bool:
        """Whether there is a folder."""
        with _os_errors(self.text):
            return self._folder.is_folder()

    def names(self) -> list[str]:
        """What lies directly in the folder."""
        with _os_errors(self.text):
            return sorted(self._folder.names()) if self._folder.is_folder() else []

    def read(self) -> bytes:
        """The whole content of the file."""
        with self.local() as path:
            return path.read_bytes()

    def delete(self) -> None:
        """Delete the file, if there is one."""
        with _os_errors(self.text):
            self._folder.parent().delete(self._folder.name)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """A copy."""
        with scratch.folder("read") as local:
            path = Path(local, self._folder.name)
            with _os_errors(self.text):
                self._folder.copy_out("", path)
            yield path

    @contextmanager
    def local_prefix(self) -> Iterator[Path]:
        """A copy of each file whose name begins so."""
        with scratch.folder("read") as local:
            with _os_errors(self.text):
                parent, name = self._folder.parent(), self._folder.name
                found = [each for each in parent.names() if each.startswith(f"{name}.")] if parent.exists() else []
                for each in found:
                    parent.copy_out(each, Path(local, each))
            yield Path(local, name)

    @contextmanager
    def written(self) -> Iterator[Path]:
        """A path in a temporary folder, from where the JVM copies files."""
        with scratch.folder("written") as local:
            fresh = Path(local, self._folder.name)
            yield fresh
            with _os_errors(self.text):
                self._folder.parent().replace_by(_files(Path(local)))


def _files(path: Path) -> dict[str, Path]:
    """Every file in a folder, by its path there."""
    return {str(each.relative_to(path)): each for each in sorted(path.rglob("*")) if not each.is_dir()}


def _put_in_place(fresh: Path, folder: Path) -> None:
    files = {file: folder / name for name, file in _files(fresh).items()}
    # What can go wrong does so before the first is renamed.
    for file, place in files.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
        if place.exists():
            shutil.copymode(place, file)
    for file, place in files.items():
        file.replace(place)
        # What Hadoop may have written beside the file that was there: the checksum of another content.
        place.with_name(f".{place.name}.crc").unlink(missing_ok=True)


def _hadoop_folder(text: str, argument: str, spark: Any) -> HadoopFolder:
    # Spark is needed only here: a program that names a local path can do without.
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from keraunos.launch.hadoop_errors import said
    from keraunos.session.registry import session_of

    try:
        return session_of(spark or SparkSession.builder.getOrCreate()).folder(text)
    except (Py4JError, PySparkException) as error:
        raise JobError(
            f"`{argument}` must be a path of this machine, such as '/data/model' or 'file:///data/model', or one that "
            f"Hadoop knows, such as 'hdfs://host/model' or 's3a://bucket/model'. Received: {text!r} ({said(error)}). "
            "Give Spark the file system's jars, or choose another path."
        ) from error


def _os_errors(text: str) -> Any:
    from keraunos.launch.hadoop_errors import as_os_errors

    return as_os_errors(text)
