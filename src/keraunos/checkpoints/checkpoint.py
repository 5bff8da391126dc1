"""One complete state of a training as plain data. Runs on the driver.

Its content is decided by the code that creates it; here it is numbers, names and arrays. Content that cannot be stored
raises an error when the checkpoint is created, in the thread that creates it, and not later in the thread that writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from keraunos.errors import CheckpointError

_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NUMPY_KINDS = "biufcSUmM"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """One complete state of a training.

    Attributes:
        number: increases with every checkpoint of a directory, and is part of its name.
        facts: plain data, as JSON has it; floats may be NaN or infinite. They are copied: a tuple becomes a list, a
            numpy number a Python one.
        arrays: groups of arrays by name, as "parameters", "rank-3", "slice-0". A group becomes a file. The arrays are
            not copied: the caller must not change them afterwards.
    """

    number: int
    facts: Mapping[str, Any]
    arrays: Mapping[str, Sequence[npt.NDArray[Any]]]

    def __post_init__(self) -> None:
        if isinstance(self.number, bool) or not isinstance(self.number, int) or self.number < 0:
            raise CheckpointError(f"A checkpoint's number must be an integer from 0 up. Received: {self.number!r}.")
        groups = {name: tuple(np.asarray(array) for array in group) for name, group in self.arrays.items()}
        for name, group in groups.items():
            if not _GROUP.fullmatch(name):
                raise CheckpointError(
                    "A checkpoint's groups become files, so their names are of letters, digits, '-', '_' and '.', and "
                    f"begin with a letter or a digit. Received: {name!r}."
                )
            for array in group:
                dtype_name(array.dtype)
        object.__setattr__(self, "facts", plain(self.facts, "facts"))
        object.__setattr__(self, "arrays", groups)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Returns the name of a type in a manifest, byte order included."""
    # First types that numpy does not have itself: some report numpy's kind of float.
    if hasattr(ml_dtypes, dtype.name):
        return dtype.name
    if dtype.kind in _NUMPY_KINDS:
        return dtype.str
    raise CheckpointError(
        "A checkpoint's arrays must hold numbers, booleans, dates, bytes or text, which are the same bytes in any "
        f"process. Received: an array of dtype {dtype}."
    )


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the type that `dtype_name` named; raises `ValueError` if it is none that a checkpoint holds."""
    try:
        dtype = np.dtype(getattr(ml_dtypes, name, name))
    except TypeError as error:
        raise ValueError(f"{name!r} is no type of an array") from error
    if dtype.kind not in _NUMPY_KINDS and not hasattr(ml_dtypes, dtype.name):
        raise ValueError(f"{name!r} is no type of an array that a checkpoint holds")
    return dtype


def array_bytes(name: str, shape: Sequence[int]) -> int:
    """Returns how many bytes an array of this type and shape takes; raises `ValueError` if there is no such array."""
    size = dtype_of(name).itemsize
    for each in shape:
        if isinstance(each, bool) or not isinstance(each, int) or each < 0:
            raise ValueError(f"{shape!r} is no shape of an array")
        size *= each
    return size


def is_group(name: str) -> bool:
    """Returns whether this can be the name of a group of arrays, and so of a file."""
    return _GROUP.fullmatch(name) is not None


def plain(value: Any, where: str) -> Any:
    """Returns a copy of the value in JSON's own types; `where` names it if it has other ones."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise CheckpointError(f"The keys of `{where}` must be text, as in JSON. Received: {key!r}.")
        return {str(key): plain(each, f"{where}.{key}") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, f"{where}[{place}]") for place, each in enumerate(value)]
    raise CheckpointError(
        f"`{where}` must be plain data: numbers, text, booleans, None, lists or mappings of them. Received: "
        f"{type(value).__name__}. Arrays go into `arrays`."
    )
