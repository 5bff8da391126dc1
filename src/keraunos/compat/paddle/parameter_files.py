"""Paddle's binary parameter files: one a parameter, in a folder a pass. Runs on the driver.

A file is a header (int32 version 0, uint32 4 for the bytes of a number, uint64 for how many there are) and as many
float32, all little-endian. `save_parameters` and `load_parameters` take a folder of this machine, or one under any
Hadoop path.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.launch.given_paths import GivenPath, given_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = 0
_HEADER = struct.Struct("<iIQ")
_NUMBER = np.dtype("<f4")

Arrays = Mapping[str, npt.NDArray[Any]]


def save_parameters(folder: str, parameters: Arrays, *, spark: SparkSession | None = None) -> None:
    """Write one file a parameter; files of the same names are replaced."""
    files = _folder(folder, spark)
    for name, values in parameters.items():
        _check_name(name)
        files.child(name).replace(to_bytes(values))


def load_parameters(folder: str, like: Arrays, *, spark: SparkSession | None = None) -> dict[str, npt.NDArray[Any]]:
    """Returns the parameters of a folder, by name, in the shapes and types of `like`; all of them must be there."""
    files = _folder(folder, spark)
    loaded = {}
    for name, values in like.items():
        _check_name(name)
        if not files.child(name).exists():
            raise ModelError(
                f"The folder {folder!r} must hold a file for every parameter. Expected: {name!r}. Received: none of "
                "that name. Give the folder of a pass of the same configuration."
            )
        flat = from_bytes(files.child(name).read(), name=name, size=values.size)
        loaded[name] = flat.reshape(values.shape).astype(values.dtype, copy=False)
    return loaded


def to_bytes(values: npt.NDArray[Any]) -> bytes:
    """Returns the content of a parameter's file."""
    flat = np.ascontiguousarray(values, _NUMBER)
    return _HEADER.pack(VERSION, _NUMBER.itemsize, flat.size) + flat.tobytes()


def from_bytes(content: bytes, *, name: str, size: int | None = None) -> npt.NDArray[np.float32]:
    """Returns the numbers of a parameter's file, flat.

    `name` is what an error calls it, `size` how many there have to be.
    """
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


def _folder(path: str, spark: SparkSession | None) -> GivenPath:
    """Returns the folder; with a session a plain path is one of Hadoop's default file system."""
    return given_path(path, "folder", spark=spark, plain_by_hadoop=spark is not None)


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
