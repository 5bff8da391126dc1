"""Images and labels in idx files, the format of MNIST, on any Hadoop file system.

`IdxFolder` runs on the driver; what parses a file and cuts it runs on executors, so that the rows of a large file never
pass through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from keraunos.compat.idx_format import HEAD_BYTES, PARTS, Bytes, LocalFiles, header, names_of, parse, unpacked
from keraunos.errors import DataError, JobError
from keraunos.session.session import Session

# Usual folders of the files.
_FOLDERS = ("", "mnist/", "MNIST_data/")
__all__ = ["PARTS", "Bytes", "IdxFolder", "IdxPair", "blocks", "cut", "one_hot", "parse", "pixels", "rows"]

# Rows that travel together: few enough that partitions come out even, enough that a shuffle moves few objects.
_BLOCK_ROWS = 64


@dataclass(frozen=True)
class IdxPair:
    """The images and the labels of one part of a data set, as paths, and how many there are."""

    images: str
    labels: str
    rows: int


class Files(Protocol):
    """A folder, as far as it is read."""

    def has(self, name: str) -> bool:
        """Returns whether the folder holds a file of this name."""

    def read(self, name: str) -> bytes:
        """Returns the whole content of a file."""

    def head(self, name: str, length: int) -> bytes:
        """Returns the first bytes of a file, or all of a shorter one."""


class IdxFolder:
    """A folder with the four files of MNIST, plain or gzipped: any Hadoop path or, without Spark, a local one."""

    def __init__(self, path: str, session: Session | None = None) -> None:
        self._path = path.rstrip("/") or "/"
        self._folder: Files = LocalFiles(Path(path)) if session is None else session.folder(self._path)

    def pair(self, part: str) -> IdxPair:
        """Returns the files of `train` or `t10k`; a missing or damaged file is an error that says what to do."""
        names = [self._find(part, kind) for kind in ("images", "labels")]
        (images, *_), (labels, *_) = (
            self._shape(name, kind) for name, kind in zip(names, ("images", "labels"), strict=True)
        )
        if images != labels:
            raise DataError(
                f"The files {names[0]!r} and {names[1]!r} in {self._path!r} must have a label for each image. "
                f"Received: {images} images and {labels} labels."
            )
        return IdxPair(self._full(names[0]), self._full(names[1]), images)

    def arrays(self, part: str) -> tuple[Bytes, Bytes]:
        """Returns the images, one per row, and the labels of a part, on the driver."""
        names = [self._find(part, kind) for kind in ("images", "labels")]
        images, labels = (parse(self._folder.read(name), name) for name in names)
        return images.reshape(len(images), -1), labels

    def _find(self, part: str, kind: str) -> str:
        names = [f"{folder}{name}" for folder in _FOLDERS for name in names_of(part, kind)]
        found = next((name for name in names if self._folder.has(name)), None)
        if found is None:
            raise JobError(
                f"The {kind} of MNIST's {part!r} part are missing. Expected: '{part}-{kind}-idx1-ubyte' or "
                f"'{part}-{kind}-idx3-ubyte', plain or .gz, in {self._path!r} or its folder 'mnist'. Received: no such "
                f"file. Put the four files there, as in `hadoop fs -put MNIST_data/* {self._path}`, or copy them where "
                "the path is a local one; to read them from elsewhere, set spark.hdfs.dir to that folder, in "
                "spark-defaults.conf or with --conf, as a path or as a URL such as file:///home/me/MNIST_data."
            )
        return found

    def _shape(self, name: str, kind: str) -> tuple[int, ...]:
        shape, _ = header(unpacked(self._folder.head(name, HEAD_BYTES), most=HEAD_BYTES), name)
        expected = 3 if kind == "images" else 1
        if len(shape) != expected:
            raise DataError(
                f"The file {name!r} in {self._path!r} must hold {kind}, an array of {expected} dimension(s). "
                f"Received: one of {len(shape)}."
            )
        return shape

    def _full(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


def blocks(session: Session, pair: IdxPair, partitions: int) -> Any:
    """Returns an RDD of (number, (images, labels)), a few rows each, spread evenly over the partitions."""
    images = session.binary_files(pair.images).flatMap(cut)
    labels = session.binary_files(pair.labels).flatMap(cut)
    return images.join(labels, numPartitions=partitions)


def rows(block: tuple[int, tuple[Bytes, Bytes]], classes: int = 10) -> Iterator[tuple[Any, Any]]:
    """Returns a block's rows as a model takes them: pixels from 0 to 1, and the label as a vector with a single 1."""
    _, (images, labels) = block
    return zip(pixels(images), one_hot(labels, classes), strict=True)


def pixels(images: Bytes) -> npt.NDArray[np.float32]:
    """Images as rows of numbers from 0 to 1."""
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def one_hot(labels: Bytes, classes: int = 10) -> npt.NDArray[np.float32]:
    """Labels as rows that are 1 at the label and 0 elsewhere."""
    if labels.size and labels.max() >= classes:
        raise DataError(f"A label must be a number from 0 to {classes - 1}. Received: {int(labels.max())}.")
    return np.eye(classes, dtype=np.float32)[labels]


def cut(file: tuple[str, bytes]) -> Iterator[tuple[int, Bytes]]:
    """Yields a file's rows in numbered blocks."""
    name, content = file
    array = parse(content, name)
    for number, start in enumerate(range(0, len(array), _BLOCK_ROWS)):
        # A copy, so that what is sent on is the block and not the file behind it.
        yield number, array[start : start + _BLOCK_ROWS].copy()
