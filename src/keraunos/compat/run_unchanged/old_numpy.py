"""Names that numpy had until 1.24 or 2.0, for old programs. Runs on the driver and on executors.

`np.int` was Python's `int`, and so on: nothing is computed in another way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_OF_PYTHON: Mapping[str, type] = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "long": int,
    "object": object,
    "str": str,
    "unicode": str,
}
_RENAMED = {
    "Inf": "inf",
    "Infinity": "inf",
    "NINF": "-inf",
    "NaN": "nan",
    "alltrue": "all",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "infty": "inf",
    "product": "prod",
    "sometrue": "any",
    "string_": "bytes_",
    "unicode_": "str_",
}


def install() -> None:
    """Let numpy have the names, now or when it is imported. Once is enough."""
    if "numpy" in sys.modules:
        give_names(sys.modules["numpy"])
    elif not any(isinstance(finder, _NumpyFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NumpyFinder())


def give_names(numpy: Any) -> None:
    """Give numpy those of the names that it lacks."""
    has = vars(numpy)
    has |= {name: kind for name, kind in _OF_PYTHON.items() if name not in has}
    for name, today in _RENAMED.items():
        if name not in has:
            has[name] = -has[today[1:]] if today.startswith("-") else has[today]
    has.setdefault("asscalar", _as_scalar)


def _as_scalar(array: Any) -> Any:
    """Returns the element of an array of one element."""
    return array.item()


class _NumpyFinder(MetaPathFinder):
    """Finds numpy as usual, and adds the old names once it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Numpy's own spec."""
        if fullname != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = _followed(loader.exec_module)
        return spec


def _followed(execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def run(module: ModuleType) -> None:
        execute(module)
        give_names(module)

    return run
