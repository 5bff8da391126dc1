"""The idx format, in which MNIST comes: arrays of bytes, plain or gzipped. Runs on the driver and on executors."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from keraunos.errors import DataError

Bytes = npt.NDArray[np.uint8]

PARTS = ("train", "t10k")
HEAD_BYTES = 4096

# The names that the files go by: images are idx3, also where their name says idx1.
_NAMES = ("-idx3-ubyte", "-idx1-ubyte", ".idx3-ubyte", ".idx1-ubyte")
_PACKED = ("", ".gz")

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8


def names_of(part: str, kind: str) -> list[str]:
    """Returns the possible names of the file with the `images` or the `labels` of `train` or `t10k`."""
    return [f"{part}-{kind}{name}{packed}" for name in _NAMES for packed in _PACKED]


def parse(content: bytes, name: str) -> Bytes:
    """Returns the array in an idx file of unsigned bytes, which may be gzipped."""
    plain = unpacked(content)
    shape, start = header(plain, name)
    expected = int(np.prod(shape, dtype=np.int64))
    if len(plain) - start != expected:
        raise DataError(
            f"The file {name!r} must hold {expected} bytes after its header, as that says. Received: "
            f"{len(plain) - start}. Copy the file again."
        )
    return np.frombuffer(plain, np.uint8, offset=start).reshape(shape)


def header(plain: bytes, name: str) -> tuple[tuple[int, ...], int]:
    """Returns the shape that a file says it has, and where its data begin."""
    dimensions = plain[3] if len(plain) > 3 else 0
    start = 4 + 4 * dimensions
    if plain[:2] != b"\0\0" or not dimensions or plain[2] != _UNSIGNED_BYTE or len(plain) < start:
        raise DataError(
            f"The file {name!r} must be an idx file of unsigned bytes, plain or gzipped. Received: a file that begins "
            f"with {plain[:4]!r}."
        )
    return struct.unpack(f">{dimensions}I", plain[4:start]), start


def unpacked(content: bytes, most: int = 0) -> bytes:
    """Returns the content, unzipped where it is zipped; of the head of a file the first `most` bytes."""
    if content[:2] != _GZIP:
        return content
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content, most)
    except zlib.error as error:
        raise DataError(f"A gzipped file must be whole. Received: {error}. Copy the file again.") from error


class LocalFiles:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, name: str) -> bool:
        """Returns whether the folder holds a file of this name."""
        return (self._path / name).is_file()

    def read(self, name: str) -> bytes:
        """Returns the whole content of a file."""
        return (self._path / name).read_bytes()

    def head(self, name: str, length: int) -> bytes:
        """Returns the first bytes of a file, or all of a shorter one."""
        with (self._path / name).open("rb") as file:
            return file.read(length)
