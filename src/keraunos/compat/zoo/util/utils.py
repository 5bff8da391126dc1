"""`zoo.util.utils`: records of arrays and rows, and this machine. Runs on the driver and on executors."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from keraunos.compat.zoo.bigdl.util.common import Sample
from keraunos.errors import JobError
from keraunos.session.registry import session_of

__all__ = [
    "Sample",
    "convert_row_to_numpy",
    "detect_conda_env_name",
    "detect_python_location",
    "get_node_ip",
    "np",
    "pack_penv",
    "to_sample_rdd",
]


def to_sample_rdd(x: Any, y: Any, sc: Any, num_slices: int | None = None) -> Any:
    """Returns an RDD of a `Sample` for each row of two arrays."""
    return session_of(sc).parallelize(list(zip(x, y, strict=True)), num_slices).map(_sample_of)


def get_node_ip() -> str:
    """Returns this machine's address."""
    try:
        return socket.gethostbyname(socket.getfqdn(socket.gethostname()))
    except OSError:
        return "127.0.0.1"


def detect_python_location() -> str:
    """Returns the Python that runs."""
    return sys.executable


def detect_conda_env_name() -> str:
    """Returns the name of the conda environment that is active."""
    name = os.environ.get("CONDA_DEFAULT_ENV") or (
        Path(sys.prefix).name if Path(sys.prefix, "conda-meta").is_dir() else None
    )
    if name is None:
        raise JobError(
            f"There must be an active conda environment. Received: Python in {sys.prefix!r}. Activate one; for a "
            "cluster, start the program with `keraunos submit --as zoo`, which needs none."
        )
    return name


def pack_penv(conda_name: str, output_name: str) -> NoReturn:
    """Refused: it packed a conda environment for executors."""
    raise JobError(
        f"pack_penv must be replaced: it packed the conda environment {conda_name!r} as {output_name!r}. Pack it with "
        "conda-pack, and start the program with `keraunos submit --as zoo --archives …`."
    )


def convert_row_to_numpy(
    row: Any, schema: Any, feature_cols: Sequence[str], label_cols: Sequence[str] | None, accept_str_col: bool = False
) -> tuple[Any, ...]:
    """Returns the arrays of a row's columns: (features, labels), or (features,); several columns are a list."""
    sides = [feature_cols] if not label_cols else [feature_cols, label_cols]
    return tuple(_alone([_array(row, schema, name, accept_str_col) for name in side]) for side in sides)


def _array(row: Any, schema: Any, name: str, accept_str_col: bool) -> Any:
    value, kind = row[name], schema[name].dataType.typeName()
    if hasattr(value, "toArray"):
        array = np.asarray(value.toArray())
        return array.astype(np.float32) if type(value).__name__ == "DenseVector" else array
    if kind == "array":
        strings = schema[name].dataType.elementType.typeName() == "string"
        return np.asarray(value).astype(np.str_ if strings and accept_str_col else np.float32)
    if kind in ("float", "integer", "long", "double") or (kind == "string" and accept_str_col):
        return np.array(value)
    raise JobError(
        f"The column {name!r} must have numbers, arrays or vectors. Received: {value!r} of type {kind!r}. Cast it."
    )


def _alone(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays


def _sample_of(pair: tuple[Any, Any]) -> Sample:
    return Sample.from_ndarray(*pair)
