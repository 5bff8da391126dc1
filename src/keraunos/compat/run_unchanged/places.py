"""Whose code is whose: the program's, or an installed package's. Runs on the driver and on executors."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path

# Recognized by name in any location: Spark runs its Python from its own folder or archive.
_LIBRARIES = frozenset({"keras", "keraunos", "py4j", "pyspark", "tensorboard", "tensorflow", "tf_keras", "tf_slim"})
_STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))


def is_library(module: str) -> bool:
    """Returns whether a module's name shows that it does not belong to the program."""
    root = module.partition(".")[0]
    return root in _LIBRARIES or root in sys.stdlib_module_names


@cache
def lies_outside_packages(file: str) -> bool:
    """Returns whether a file or folder is not where packages are installed."""
    path = Path(file).resolve()
    if {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return not any(path.is_relative_to(folder) for folder in _STANDARD_LIBRARY)
