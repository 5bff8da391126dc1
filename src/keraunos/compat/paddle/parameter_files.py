"""Paddle's binary parameter files: one a parameter, in a folder a pass. Runs on the driver.

A file is a header (int32 version 0, uint32 4 for the bytes of a number, uint64 for how many there are) and as many
float32, all little-endian. `save_parameters` and `load_parameters` take a folder: a local one, or, with a Spark
session, one on any file system that Hadoop knows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = 0
_HEADER = struct.Struct("<iIQ")
_NUMBER = np.dtype("<f4")

Arrays = Mapping[str, npt.NDArray[Any]]


def pass_folder(save_dir: str, number: int) -> str:
    """Where the parameters of a pass, counted from 0, are kept under `save_dir`."""
    return f"{save_dir.rstrip('/')}/pass-{number:05d}"


def save_parameters(folder: str, parameters: Arrays, *, spark: SparkSession | None = None) -> None:
    """Write one file a parameter; files of the same names are replaced."""
    files = _files(folder, spark)
    for name, values in parameters.items():
        _check_name(name)
        files.replace(name, to_bytes(values))


def load_parameters(folder: str, like: Arrays, *, spark: SparkSession | None = None) -> dict[str, npt.NDArray[Any]]:
    """The parameters of a folder, by name, in the shapes and types of `like`; all of them must be there."""
    files = _files(folder, spark)
    loaded = {}
    for name, values in like.items():
        _check_name(name)
        if not files.has(name):
            raise ModelError(
                f"The folder {folder!r} must hold a file for every parameter. Expected: {name!r}. Received: none of "
                "that name. Give the folder of a pass of the same configuration."
            )
        flat = from_bytes(files.read(name), name=name, size=values.size)
        loaded[name] = flat.reshape(values.shape).astype(values.dtype, copy=False)
    return loaded


def to_bytes(values: npt.NDArray[Any]) -> bytes:
    """The content of a parameter's file."""
    flat = np.ascontiguousarray(values, _NUMBER)
    return _HEADER.pack(VERSION, _NUMBER.itemsize, flat.size) + flat.tobytes()


def from_bytes(content: bytes, *, name: str, size: int | None = None) -> npt.NDArray[np.float32]:
    """The numbers of a parameter's file, flat; `name` is what an error calls it, `size` how many there have to be."""
    if len(content) < _HEADER.size:
        raise _wrong(name, f"a header of {_HEADER.size} bytes", f"{len(content)} bytes", "The file was cut off")
    version, width, count = _HEADER.unpack_from(content)
    if version != VERSION:
        raise _wrong(name, f"version {VERSION}", f"version {version}", "It is not a parameter file of Paddle 0.x")
    if width != _NUMBER.itemsize:
        raise _wrong(name, "numbers of 4 bytes", f"of {width} bytes", "Save it with a Paddle that computes in float32")
    held = len(content) - _HEADER.size
    if held != count * width:
        raise _wrong(
            name, f"{count} numbers in {count * width} bytes", f"{held} bytes", "The file was cut off or added to"
        )
    if size is not None and count != size:
        raise _wrong(name, f"{size} numbers", f"{count}", "It belongs to another configuration")
    return np.frombuffer(content, _NUMBER, offset=_HEADER.size).astype(np.float32)


class _Files(Protocol):
    """A folder of small files."""

    def has(self, name: str) -> bool:
        """Whether it holds a file of this name."""

    def read(self, name: str) -> bytes:
        """The whole content of a file."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, or another content for it."""


class _LocalFiles:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, name: str) -> bool:
        return (self._path / name).is_file()

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def replace(self, name: str, content: bytes) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        fresh = self._path / f".{name}.new"
        fresh.write_bytes(content)
        fresh.replace(self._path / name)


def _files(folder: str, spark: SparkSession | None) -> _Files:
    if spark is not None:
        # Spark is needed only here, and a machine without it can still read local files.
        from keraunos.launch.hadoop_files import HadoopFolder

        return HadoopFolder(spark, folder)
    scheme, separator, rest = folder.partition("://")
    if separator and scheme != "file":
        raise ModelError(
            f"A folder on {scheme!r} must be read and written through Spark. Received: {folder!r} without a session. "
            "Give `spark=`."
        )
    return _LocalFiles(Path(rest if separator else folder))


def _check_name(name: str) -> None:
    if not name or "/" in name or name in {".", ".."}:
        raise ModelError(
            f"A parameter's name must be one that a file can have. Received: {name!r}. Give the parameter another "
            "parameter_name."
        )


def _wrong(name: str, expected: str, received: str, what: str) -> ModelError:
    return ModelError(
        f"The file of the parameter {name!r} is wrong. Expected: {expected}. Received: {received}. {what}."
    )
