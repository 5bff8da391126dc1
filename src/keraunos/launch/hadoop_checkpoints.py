"""Where checkpoints are stored: a local folder, or any path that Hadoop knows. Runs on the driver.

Only the driver writes and reads checkpoints, so a local path is the driver's own. A driver that is started again on
another machine finds them only on a file system that both have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from keraunos import scratch
from keraunos.checkpoints.folder import Folder, LocalFolder, Owned, Status, write_file
from keraunos.errors import JobError
from keraunos.launch.hadoop_errors import as_os_errors, said
from keraunos.session.session import Session


def folder_of(session: Session, path: str) -> Folder:
    """The folder for checkpoints at a path: of plain files where it is on the driver's own disk, else Hadoop's."""
    if not isinstance(path, str) or not path:
        raise JobError(f"`checkpointDir` must be a path of a folder. Received: {path!r}.")
    try:
        local = session.folder(path).local_path
    except (Py4JError, PySparkException) as error:
        raise JobError(
            "`checkpointDir` must be a path that Hadoop knows, such as '/checkpoints', 'hdfs://host/checkpoints' or "
            f"'s3a://bucket/checkpoints'. Received: {path!r} ({said(error)}). Give Spark the file system's jars, or "
            "choose another path."
        ) from error
    return HadoopCheckpoints(session, path) if local is None else LocalFolder(local)


class HadoopCheckpoints:
    """A folder on any file system that Hadoop knows.

    Files go through a temporary folder of the driver, from where the JVM copies them: no large data crosses from Python
    to Java. HDFS renames a folder at once. Object stores such as `s3a://` copy file by file: a driver that is killed in
    between leaves a checkpoint without its manifest or a file that the manifest names, which readers skip.

    Any thread may use it; a call does not return before the JVM has done the work.
    """

    def __init__(self, session: Session, path: str) -> None:
        with as_os_errors(path):
            self._folder = session.folder(path)
            self._path = self._folder.uri

    @property
    def path(self) -> str:
        """Where it is, for messages."""
        return self._path

    def make(self, name: str = "") -> None:
        """Make a sub-folder, or the folder itself."""
        with as_os_errors(self._path, name):
            self._folder.make(name)

    def write(self, name: str, buffers: Iterable[memoryview | bytes]) -> None:
        """Write a new file."""
        with _local_file() as local:
            write_file(local, buffers)
            with as_os_errors(self._path, name):
                self._folder.copy_in(local, name)

    def write_private(self, name: str, content: bytes) -> None:
        """Write a new file that only its owner may read and write, where the file system knows owners."""
        with as_os_errors(self._path, name):
            self._folder.write_private(name, content)

    def read_owned(self, name: str) -> Owned:
        """A file, and whose it is, as Hadoop tells."""
        with as_os_errors(self._path, name):
            file, folder = Status(*self._folder.status(name)), Status(*self._folder.status())
            return Owned(self._folder.read(name), file, folder, self._folder.user)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A file to read, as a local copy."""
        with _local_file() as local:
            with as_os_errors(self._path, name):
                self._folder.copy_out(name, local)
            with local.open("rb") as file:
                yield file

    def names(self) -> list[str]:
        """What lies directly in the folder."""
        try:
            with as_os_errors(self._path):
                return self._folder.names()
        except FileNotFoundError:
            return []

    def rename(self, name: str, new: str) -> None:
        """Give a file or sub-folder its new name."""
        with as_os_errors(self._path, name):
            self._folder.rename(name, new)

    def delete(self, name: str) -> None:
        """Delete a file, or a sub-folder with all that is in it."""
        with as_os_errors(self._path, name):
            self._folder.delete(name)


@contextmanager
def _local_file() -> Iterator[Path]:
    """The path of a file that does not exist yet, and does not any more afterwards."""
    with scratch.folder("checkpoint") as folder:
        yield Path(folder, "file")
