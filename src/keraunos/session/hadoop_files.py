"""Files on any Hadoop file system, by Hadoop's own FileSystem. Runs on the driver."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from keraunos.errors import JobError

logger = logging.getLogger(__name__)

_CHUNK = 4 << 20


class HadoopFolder:
    """A folder under any Hadoop path: `hdfs://`, `s3a://`, `viewfs://`, `file:/` or a plain local one.

    `Session.folder` makes it, from the SparkSession or the SparkContext whose settings count.

    Any thread may use it: each has its own connection to the JVM, which ends with it, and Hadoop's file systems are
    shared by threads.
    """

    def __init__(self, driver: Any, path: str) -> None:
        self._driver = driver
        self._path_class = driver._jvm.org.apache.hadoop.fs.Path
        path_given = self._path_class(path)
        self._system = path_given.getFileSystem(_hadoop_configuration(driver))
        self._path = self._system.makeQualified(path_given)

    @property
    def uri(self) -> str:
        """The folder's whole address, with its scheme."""
        return str(self._path.toString())

    @property
    def name(self) -> str:
        """The folder's own name, without what is above it."""
        return str(self._path.getName())

    def parent(self) -> HadoopFolder:
        """Returns the folder that this one lies in."""
        above = self._path.getParent()
        if above is None:
            raise OSError(f"{self.uri!r} lies in no folder.")
        return HadoopFolder(self._driver, str(above.toString()))

    @property
    def path(self) -> str:
        """The folder's path on its file system, without the scheme and the host."""
        return str(self._path.toUri().getPath())

    @property
    def local_path(self) -> str | None:
        """The folder's path where it is one of this machine's own files, and `None` elsewhere."""
        address = self._path.toUri()
        return str(address.getPath()) if address.getScheme() == "file" else None

    def child(self, name: str) -> HadoopFolder:
        """Returns a folder in this one, or a file."""
        return HadoopFolder(self._driver, str(self._file(name).toString()))

    def is_folder(self) -> bool:
        """Returns whether there is a folder at the path."""
        return self.exists() and bool(self._system.getFileStatus(self._path).isDirectory())

    def exists(self) -> bool:
        """Returns whether there is something at the path."""
        return bool(self._system.exists(self._path))

    def has(self, name: str) -> bool:
        """Returns whether the folder holds a file of this name."""
        return bool(self._system.exists(self._file(name)))

    def write(self, name: str, content: bytes) -> None:
        """Write a new file."""
        stream = self._system.create(self._file(name), False)  # noqa: FBT003 - Hadoop's own signature: overwrite
        try:
            for start in range(0, len(content), _CHUNK):
                stream.write(bytearray(content[start : start + _CHUNK]))
        finally:
            stream.close()

    def write_private(self, name: str, content: bytes) -> None:
        """Write a new file that only its owner may read and write, where the file system knows owners."""
        stream = self._system.create(self._file(name), False)  # noqa: FBT003 - Hadoop's own signature: overwrite
        try:
            # Nothing is in it before it has its permission.
            permission = self._driver._jvm.org.apache.hadoop.fs.permission.FsPermission("600")
            self._system.setPermission(self._file(name), permission)
            stream.write(bytearray(content))
        finally:
            stream.close()

    def status(self, name: str = "") -> tuple[str, int]:
        """Who owns a file, or the folder itself, and its permission in the bits of `chmod`."""
        found = self._system.getFileStatus(self._file(name))
        return str(found.getOwner()), int(found.getPermission().toShort())

    @property
    def user(self) -> str:
        """Who this process is to Hadoop."""
        return str(
            self._driver._jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName()
        )

    def replace_by(self, files: Mapping[str, os.PathLike[str]]) -> None:
        """Copy files of this machine here, in place of files of the same names; the JVM does it.

        All of them are here before the first takes its place: what goes wrong before that leaves everything as it was.
        """
        try:
            for name, local in files.items():
                self.delete(_beside(name, "new"))
                self.copy_in(local, _beside(name, "new"))
            for name in files:
                self._put_in_place(name)
        except BaseException:
            for name in files:
                self._discard(_beside(name, "new"))
            raise

    def read(self, name: str) -> bytes:
        """Returns the whole content of a file."""
        stream = self._system.open(self._file(name))
        try:
            chunks = []
            while chunk := stream.readNBytes(_CHUNK):
                chunks.append(bytes(chunk))
            return b"".join(chunks)
        finally:
            stream.close()

    def read_own(self, name: str) -> bytes:
        """Returns the whole content of a file whose name comes from an untrusted file.

        Refused where it is a link out of the folder.
        """
        file = self._file(name)
        if self.local_path is not None:
            inside = os.path.realpath(self.local_path)
            leaves = not os.path.realpath(str(file.toUri().getPath())).startswith(f"{inside}{os.sep}")
        else:
            links = bool(self._system.supportsSymlinks())
            leaves = links and bool(self._system.getFileLinkStatus(file).isSymlink())
        if leaves:
            raise JobError(
                f"The files of a saved model must lie in its folder. Received: {name!r} in {self.uri!r}, a link to "
                "another place. Copy the file itself."
            )
        return self.read(name)

    def head(self, name: str, length: int) -> bytes:
        """Returns the first bytes of a file, or all of a shorter one."""
        stream = self._system.open(self._file(name))
        try:
            return bytes(stream.readNBytes(length))
        finally:
            stream.close()

    def names(self) -> list[str]:
        """Returns the names directly in the folder."""
        return [str(status.getPath().getName()) for status in self._system.listStatus(self._path)]

    def folders(self) -> list[str]:
        """Returns the names of the folders that lie directly in it, in their order."""
        return sorted(
            str(each.getPath().getName()) for each in self._system.listStatus(self._path) if each.isDirectory()
        )

    def make(self, name: str = "") -> None:
        """Make a sub-folder, or the folder itself, with what is missing above it."""
        if not self._system.mkdirs(self._file(name)):
            raise OSError(f"{name!r} could not be made in {self.uri!r}.")

    def copy_in(self, local: os.PathLike[str], name: str) -> None:
        """Copy a file of this machine to a new one here. The JVM does it: none of it comes through Python."""
        # Hadoop's own signature: delete the source, overwrite.
        self._system.copyFromLocalFile(False, False, self._path_class(_address(local)), self._file(name))  # noqa: FBT003

    def copy_out(self, name: str, local: os.PathLike[str]) -> None:
        """Copy a file to a new one of this machine, by the JVM."""
        # Hadoop's own signature: delete the source; write plainly, without a file of checksums beside it.
        self._system.copyToLocalFile(False, self._file(name), self._path_class(_address(local)), True)  # noqa: FBT003

    def rename(self, name: str, new: str) -> None:
        """Give a file or sub-folder a new name, which nothing may have."""
        # Hadoop would move a folder into one of that name.
        if self._system.exists(self._file(new)):
            raise FileExistsError(f"{new!r} exists in {self.uri!r}.")
        if not self._system.rename(self._file(name), self._file(new)):
            raise OSError(f"{name!r} could not be renamed to {new!r} in {self.uri!r}.")

    def delete(self, name: str) -> None:
        """Delete a file, or a sub-folder with all that is in it, if there is one."""
        file = self._file(name)
        if not self._system.delete(file, True) and self._system.exists(file):  # noqa: FBT003 - Hadoop's: recursive
            raise OSError(f"{name!r} could not be deleted in {self.uri!r}.")

    def _put_in_place(self, name: str) -> None:
        """Give a file that was written beside another its name; that other one is deleted."""
        old = _beside(name, "old")
        replaces = self.has(name)
        if replaces and self._system.getFileStatus(self._file(name)).isDirectory():
            raise IsADirectoryError(f"{name!r} is a folder in {self.uri!r}.")
        if replaces:
            self.delete(old)
            self.rename(name, old)
        try:
            self.rename(_beside(name, "new"), name)
        except BaseException:
            if replaces:
                self.rename(old, name)
            raise
        if replaces:
            self._discard(old)

    def _discard(self, name: str) -> None:
        try:
            self.delete(name)
        except Exception as error:  # noqa: BLE001 - whatever Hadoop raises; the write has succeeded, or says why not
            logger.warning("%s could not be deleted in %s: %s", name, self.uri, str(error).splitlines()[0])

    def _file(self, name: str) -> Any:
        if not name:
            return self._path
        # Hadoop would follow any of these out of the folder.
        if name.startswith("/") or ":" in name or ".." in name.split("/"):
            raise JobError(
                f"A file must lie in its folder. Expected: a name in {self.uri!r}. Received: {name!r}. Whoever wrote "
                "the name meant another place."
            )
        return self._path_class(self._path, name)


def files_at(driver: Any, path: str) -> list[str]:
    """Returns the addresses of the data files at a path: a file, all files of a folder, or what a pattern matches."""
    place = driver._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(_hadoop_configuration(driver))
    files: list[Any] = []
    for status in system.globStatus(place) or []:
        files += system.listStatus(status.getPath()) if status.isDirectory() else [status]
    return [str(file.getPath().toString()) for file in files if _is_data(file)]


def _is_data(status: Any) -> bool:
    return not status.isDirectory() and not str(status.getPath().getName()).startswith(("_", "."))


def _hadoop_configuration(driver: Any) -> Any:
    """Returns Hadoop's settings: those of the context, overridden by those of the session."""
    session = getattr(driver, "_jsparkSession", None)
    return driver._jsc.hadoopConfiguration() if session is None else session.sessionState().newHadoopConf()


def _beside(name: str, kind: str) -> str:
    """Returns the name that a file has before or after it has its own.

    Hadoop's readers pass over names that begin so.
    """
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}_{last}.{kind}"


def _address(local: os.PathLike[str]) -> str:
    """Returns a plain path as Hadoop reads it wherever its default file system is.

    Unlike in a URI nothing is escaped.
    """
    return f"file://{os.path.abspath(local)}"  # noqa: PTH100 - it need not be a Path
