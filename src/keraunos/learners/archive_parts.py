"""The files in a `.keras` archive, opened with bounds. Runs on the driver and on workers.

A small file can say that it is large: a zip entry, an array of an npz file or a dataset of an HDF5 file that is mostly
zeros. What would unpack to far more than is stored is refused before it is read. So are weights that lie outside of the
archive: HDF5 can point to any file of the machine that opens it.
"""

from __future__ import annotations

import io
import itertools
import json
import lzma
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.json_depth import check_depth

CONFIG = "config.json"
WEIGHTS = "model.weights.h5"
_NUMPY_WEIGHTS = "model.weights.npz"

# What is larger than this may be so many times larger than what is stored. Weights hardly get smaller when they are
# packed; only a file that was made for it expands like this.
UNPACKED_LIMIT = 256 << 20
EXPANSION = 100
_ENTRIES = 10_000
# What Python's zipfile raises for a file that was damaged, or made to be read by something else.
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, KeyError, NotImplementedError, OSError,
    OverflowError, RuntimeError, ValueError,
)  # fmt: skip
_DEPTH = 200


def config_of(archive: bytes) -> Any:
    """The configuration of the model in an archive."""
    with opened(archive) as parts:
        return json_of(parts, CONFIG)


def opened(archive: bytes) -> zipfile.ZipFile:
    """The archive, to be read; raises where it is none, or unpacks to far more than it is."""
    try:
        parts = zipfile.ZipFile(io.BytesIO(archive))
    except _UNREADABLE as error:
        raise ModelError(
            f"The model's archive cannot be opened. Expected: a .keras file. Received: {len(archive)} bytes that are "
            f"no zip file ({error})."
        ) from error
    entries = parts.infolist()
    if len(entries) > _ENTRIES:
        raise ModelError(
            f"The model's archive has too many files in it. Expected: at most {_ENTRIES}. Received: {len(entries)}."
        )
    if len({entry.filename for entry in entries}) != len(entries):
        twice = sorted(entry.filename for entry in entries)
        name = next(a for a, b in itertools.pairwise(twice) if a == b)
        raise ModelError(f"The model's archive must have every file once. Received: {name!r} more than once.")
    check_expansion("archive", sum(entry.file_size for entry in entries), len(archive))
    for entry in entries:
        check_expansion(f"file {entry.filename!r}", entry.file_size, entry.compress_size)
    return parts


def content_of(parts: zipfile.ZipFile, name: str) -> bytes:
    """A file of an archive; raises where it is not as it was written."""
    try:
        return parts.read(name)
    except _UNREADABLE as error:
        raise ModelError(
            f"The file {name!r} of the model's archive cannot be read. Expected: a file as Keras writes it. Received: "
            f"{type(error).__name__}: {str(error)[:200]}."
        ) from error


def json_of(parts: zipfile.ZipFile, name: str) -> Any:
    """The JSON in a file of an archive."""
    try:
        return check_depth(json.loads(content_of(parts, name)))
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"The file {name!r} of the model's archive cannot be read. Expected: JSON. Received: "
            f"{type(error).__name__}: {str(error)[:200]}."
        ) from error


def arrays_in(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an npz file by name; nothing in it is unpickled."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            entries = parts.infolist()
        check_expansion("npz file", sum(entry.file_size for entry in entries), len(content))
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            # numpy makes room for what a header claims; that may be no more than its file holds.
            for entry in entries:
                _check_array(found, entry)
            return {name: found[name] for name in found.files}
    except (*_UNREADABLE, SyntaxError, TypeError) as error:
        raise ModelError(
            f"A file of arrays cannot be read. Expected: an npz file. Received: {type(error).__name__}: "
            f"{str(error)[:200]}."
        ) from error


def check_expansion(what: str, unpacked: int, stored: int) -> None:
    """Refuse what would take far more memory than it takes room in a file."""
    if unpacked > UNPACKED_LIMIT and unpacked > EXPANSION * max(stored, 1):
        raise ModelError(
            f"The {what} of a model unpacks to {unpacked} bytes from {stored}. Expected: at most "
            f"{UNPACKED_LIMIT} bytes, or {EXPANSION} times what is stored. Received: {unpacked // max(stored, 1)} "
            "times. Save the model again with Keras, which does not compress its weights."
        )


def check_weights(archive: bytes) -> None:
    """Refuse weights that lie in other files than the archive, or claim a size that is not stored."""
    with opened(archive) as parts:
        if WEIGHTS not in parts.namelist() and _NUMPY_WEIGHTS in parts.namelist():
            # numpy's files can hold pickles. `model.save` never writes them.
            raise ModelError(
                f"The weights of a model must be in {WEIGHTS!r}, as `model.save` writes them. Received: an archive "
                f"with {_NUMPY_WEIGHTS!r}. Save the model again with Keras."
            )
        content = content_of(parts, WEIGHTS) if WEIGHTS in parts.namelist() else None
    if content is not None:
        check_hdf5(content)


def check_hdf5(content: bytes) -> None:
    """Refuse an HDF5 file that points to other files, or claims a size that is not stored."""
    import h5py

    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            _check_group(file, "", len(content), set())
    except (OSError, RuntimeError, KeyError) as error:
        raise ModelError(
            f"The weights of a model cannot be read. Expected: an HDF5 file. Received: {str(error)[:200]}."
        ) from error


def _check_group(group: Any, place: str, stored: int, seen: set[Any]) -> int:
    """Look through a group of an HDF5 file; returns how many bytes its datasets claim. `seen` has what was counted."""
    import h5py

    if place.count("/") > _DEPTH:
        raise ModelError(f"The weights of a model are nested too deeply. Expected: at most {_DEPTH} groups.")
    claimed = 0
    for name in group:
        where = f"{place}/{name}"
        # `getlink` tells of a link without following it.
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise ModelError(
                f"The weights of a model must lie in its own file. Received: {where!r}, a link to another place. "
                "Save the model again with Keras."
            )
        found = group[name]
        # One object may have several names, and a group may hold itself.
        address = h5py.h5o.get_info(found.id).addr
        if address in seen:
            continue
        seen.add(address)
        if isinstance(found, h5py.Group):
            claimed += _check_group(found, where, stored, seen)
        elif isinstance(found, h5py.Dataset):
            if found.external or found.is_virtual:
                raise ModelError(
                    f"The weights of a model must lie in its own file. Received: {where!r}, which lies in another "
                    "file. Save the model again with Keras."
                )
            claimed += int(found.size or 0) * found.dtype.itemsize
            check_expansion(f"dataset {where!r}", claimed, stored)
    return claimed


def _check_array(found: Any, entry: zipfile.ZipInfo) -> None:
    with found.zip.open(entry.filename) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    claimed = int(np.prod([int(each) for each in shape], dtype=object)) * dtype.itemsize if shape else dtype.itemsize
    if any(each < 0 for each in shape) or claimed > entry.file_size:
        raise ValueError(f"{entry.filename!r} claims {claimed} bytes and holds {entry.file_size}")
