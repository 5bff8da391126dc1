"""`zoo.common.utils`: records, and files under any Hadoop path. Runs on the driver and on executors."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlparse

import numpy as np

from keraunos.compat.zoo.bigdl.util.common import JTensor, Sample, callBigDlFunc
from keraunos.errors import DataError, JobError
from keraunos.launch.given_paths import given_path

__all__ = [
    "JTensor",
    "Sample",
    "append_suffix",
    "callZooFunc",
    "convert_to_safe_path",
    "enable_multi_fs_load",
    "enable_multi_fs_load_static",
    "enable_multi_fs_save",
    "get_file_list",
    "get_remote_file_to_local",
    "is_local_path",
    "np",
    "os",
    "put_local_file_to_remote",
    "set_core_number",
    "to_list_of_numpy",
]


def convert_to_safe_path(input_path: str, follow_symlinks: bool = True) -> str:
    """Returns the absolute path, with links resolved or not."""
    return str(Path(input_path).resolve()) if follow_symlinks else os.path.abspath(input_path)  # noqa: PTH100 - links


def to_list_of_numpy(elements: Any) -> list[Any]:
    """Returns a list of arrays, of one array or number or of a list of such."""
    given = elements if isinstance(elements, list) else [elements]
    wrong = [each for each in given if not isinstance(each, np.ndarray) and not np.isscalar(each)]
    if wrong:
        raise DataError(f"Features and labels must be arrays, numbers or lists of them. Received: {wrong[0]!r}.")
    return [np.asarray(each) for each in given]


def is_local_path(path: str) -> bool:
    """Returns whether a path is one of this machine's."""
    return urlparse(path).scheme.lower() in ("", "file")


def append_suffix(prefix: str, path: str) -> str:
    """Returns a file's name with the ending of another path."""
    return f"{prefix}.{path.rsplit('.', maxsplit=1)[-1]}"


def get_file_list(path: str, recursive: bool = False) -> list[str]:
    """Returns the files in a folder under any Hadoop path, or below it."""
    if recursive:
        raise JobError("`recursive` must be False here. Received: True. List each folder.")
    folder = given_path(path)
    return [folder.child(name).text for name in folder.names()]


def get_remote_file_to_local(remote_path: str, local_path: str, over_write: bool = False) -> None:
    """Copy a file under any Hadoop path to this machine."""
    if Path(local_path).exists() and not over_write:
        raise JobError(f"`local_path` must not exist, or `over_write` must be True. Received: {local_path!r}.")
    with given_path(remote_path, "remote_path").local() as copy:
        given_path(local_path, "local_path").replace(copy.read_bytes())


def put_local_file_to_remote(local_path: str, remote_path: str, over_write: bool = False) -> None:
    """Copy a file of this machine to any Hadoop path."""
    file = given_path(remote_path, "remote_path")
    if not over_write and file.exists():
        raise JobError(f"`remote_path` must not exist, or `over_write` must be True. Received: {remote_path!r}.")
    file.replace(Path(local_path).read_bytes())


def enable_multi_fs_save(save_func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that saves to a local path take any Hadoop path."""

    @functools.wraps(save_func)
    def save(obj: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        if is_local_path(path):
            return save_func(obj, path, *args, **kwargs)
        with tempfile.TemporaryDirectory() as folder:
            local = str(Path(folder, append_suffix("saved", path)))
            result = save_func(obj, local, *args, **kwargs)
            put_local_file_to_remote(local, path, over_write=kwargs.get("overwrite", False))
        return result

    return save


def enable_multi_fs_load_static(load_func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that loads from a local path take any Hadoop path."""

    @functools.wraps(load_func)
    def load(path: str, *args: Any, **kwargs: Any) -> Any:
        if is_local_path(path):
            return load_func(path, *args, **kwargs)
        with tempfile.TemporaryDirectory() as folder:
            local = str(Path(folder, append_suffix("loaded", path)))
            get_remote_file_to_local(path, local)
            return load_func(local, *args, **kwargs)

    return load


def enable_multi_fs_load(load_func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that loads from a local path take any Hadoop path."""

    @functools.wraps(load_func)
    def load(obj: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        bound = enable_multi_fs_load_static(functools.partial(load_func, obj))
        return bound(path, *args, **kwargs)

    return load


def set_core_number(num: int) -> NoReturn:
    """Refused: the cores are Spark's."""
    raise JobError(
        f"set_core_number must be left out: Spark says how many tasks run at once. Received: {num!r}. Set "
        "spark.executor.cores, or the master to local[n]."
    )


def callZooFunc(bigdl_type: str, name: str, *args: Any) -> NoReturn:
    """Refused: it called a function of Analytics Zoo's in the JVM."""
    callBigDlFunc(bigdl_type, name, *args)
