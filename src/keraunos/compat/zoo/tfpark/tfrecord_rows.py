"""TFRecord files under any Hadoop path. `TfRecordRows` runs on the driver, the reading on executors.

TensorFlow itself reads the files, so checksums are checked. A file that executors can open is read where it lies; any
other comes through Spark and is put into a temporary file first.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark import RDD

from keraunos import scratch
from keraunos.compat.zoo.tfpark.row_sources import RowSource
from keraunos.errors import DataError, JobError
from keraunos.session.session import Session

_GZIP = b"\x1f\x8b"
_READ_TOGETHER = 64


class TfRecordRows(RowSource):
    """The records of one or more files, in the order of the files' names."""

    def __init__(self, session: Session, path: str, argument: str = "file_path") -> None:
        self._session = session
        self._files = _listed(session, path, argument)

    def partitions(self) -> None:
        """As many as are wanted: several tasks may share a file."""
        return

    def training(self, workers: int) -> RDD[Any]:
        """At least one partition per worker; each takes whole files, or every n-th record of one."""
        return self._portions(-(-workers // len(self._files)))

    def records(self) -> RDD[tuple[Any, ...]]:
        """Returns one partition a file."""
        return self._portions(1)

    def _portions(self, parts: int) -> RDD[Any]:
        portions = [(file, part, parts) for file in self._files for part in range(parts)]
        if all(urlparse(file).scheme in ("", "file") for file in self._files):
            return self._session.parallelize(portions, len(portions)).flatMap(_read_portion)
        return self._session.union(
            [
                self._session.binary_files(file).mapPartitions(functools.partial(_read_contents, part, parts))
                for file, part, parts in portions
            ]
        )


def _listed(session: Session, path: Any, argument: str) -> list[str]:
    """Returns the files at a path: a file, a folder, a pattern, or several with commas between them."""
    if not isinstance(path, str) or not path:
        raise JobError(f"`{argument}` must be the path of TFRecord files. Received: {path!r}.")
    files = [file for each in path.split(",") for file in session.files_at(each.strip())]
    if not files:
        raise JobError(
            f"`{argument}` must lead to at least one TFRecord file. Received: {path!r}, which matches none. Give a "
            "file, a folder, or a pattern such as 'hdfs:///data/part-*'."
        )
    return sorted(files)


def _read_portion(portion: tuple[str, int, int]) -> Iterator[tuple[bytes]]:
    address, part, parts = portion
    return _records(unquote(urlparse(address).path), address, part, parts)


def _read_contents(part: int, parts: int, files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[bytes]]:
    for address, content in files:
        with tempfile.NamedTemporaryFile(prefix="keraunos-tfrecord-", dir=scratch.spark_directory()) as file:
            file.write(content)
            file.flush()
            yield from _records(file.name, address, part, parts)


def _records(path: str, address: str, part: int, parts: int) -> Iterator[tuple[bytes]]:
    """Yields every `parts`-th record of a file, from number `part` on."""
    import tensorflow as tf

    with Path(path).open("rb") as file:
        packed = "GZIP" if file.read(len(_GZIP)) == _GZIP else ""
    # A separate graph and session work with and without TensorFlow's eager mode in the process.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        dataset = tf.data.TFRecordDataset(path, compression_type=packed).shard(parts, part).batch(_READ_TOGETHER)
        following = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        while True:
            try:
                records = session.run(following)
            except tf.errors.OutOfRangeError:
                return
            except tf.errors.DataLossError as error:
                lines = [line.strip() for line in str(error.message).splitlines()]
                what = next((line for line in lines if "record" in line), "the data do not match their checksum")
                raise DataError(
                    f"A TFRecord file is damaged. Expected: records with their checksums. Received: {what} in "
                    f"{address!r}. Write the file again."
                ) from None
            for record in records:
                yield (bytes(record),)
