"""Files on any file system that Hadoop knows, by Hadoop's own FileSystem. Runs on the driver."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_CHUNK = 4 << 20


class HadoopFolder:
    """A folder under any Hadoop path: `hdfs://`, `s3a://`, `viewfs://`, `file:/` or a plain local one."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        session: Any = spark
        self._path_class = session._jvm.org.apache.hadoop.fs.Path
        self._path = self._path_class(path)
        self._system = self._path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def exists(self) -> bool:
        """Whether there is something at the path."""
        return bool(self._system.exists(self._path))

    def has(self, name: str) -> bool:
        """Whether the folder holds a file of this name."""
        return bool(self._system.exists(self._file(name)))

    def write(self, name: str, content: bytes) -> None:
        """Write a new file."""
        stream = self._system.create(self._file(name), False)  # noqa: FBT003 - Hadoop's own signature: overwrite
        try:
            for start in range(0, len(content), _CHUNK):
                stream.write(bytearray(content[start : start + _CHUNK]))
        finally:
            stream.close()

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, or another content for it; readers see all of it or none."""
        self._system.delete(self._file(f"_{name}.new"), False)  # noqa: FBT003 - Hadoop's own signature: recursive
        self.write(f"_{name}.new", content)
        self._system.delete(self._file(name), False)  # noqa: FBT003 - Hadoop's own signature: recursive
        if not self._system.rename(self._file(f"_{name}.new"), self._file(name)):
            raise OSError(f"{name!r} could not be put in its place in {self._path.toString()!r}.")

    def read(self, name: str) -> bytes:
        """The whole content of a file."""
        stream = self._system.open(self._file(name))
        try:
            chunks = []
            while chunk := stream.readNBytes(_CHUNK):
                chunks.append(bytes(chunk))
            return b"".join(chunks)
        finally:
            stream.close()

    def head(self, name: str, length: int) -> bytes:
        """The first bytes of a file, or all of a shorter one."""
        stream = self._system.open(self._file(name))
        try:
            return bytes(stream.readNBytes(length))
        finally:
            stream.close()

    def _file(self, name: str) -> Any:
        return self._path_class(self._path, name)
