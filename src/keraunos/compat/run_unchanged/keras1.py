"""Modules of Keras 1 and 2 that Keras 3 no longer has, for old programs. Runs on the driver and on executors.

What was in `keras.layers.core` and its neighbours is in `keras.layers` today, and what was in `keras.utils.np_utils` is
in `keras.utils`: the old modules export the names of the new ones.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_LAYERS = (
    "advanced_activations",
    "convolutional",
    "core",
    "embeddings",
    "merge",
    "noise",
    "normalization",
    "pooling",
    "recurrent",
    "wrappers",
)
_TODAY = {f"keras.layers.{name}": "keras.layers" for name in _LAYERS} | {"keras.utils.np_utils": "keras.utils"}


def install() -> None:
    """Let this process's imports find the old modules. Once is enough."""
    if not any(isinstance(finder, _OldKerasFinder) for finder in sys.meta_path):
        sys.meta_path.append(_OldKerasFinder())


class _OldKerasFinder(MetaPathFinder):
    """The last finder: if Keras itself has such a module, that module is used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, _AliasLoader(_TODAY[fullname])) if fullname in _TODAY else None


class _AliasLoader(Loader):
    """Makes a module that has the names of another."""

    def __init__(self, today: str) -> None:
        self._today = today

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        today: Any = import_module(self._today)
        vars(module).update({name: value for name, value in vars(today).items() if not name.startswith("_")})
