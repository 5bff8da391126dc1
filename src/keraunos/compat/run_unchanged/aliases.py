"""Modules under the names that a program imports. Runs on the driver and on workers.

`import sparkflow.graph_utils` imports the module `keraunos.compat.sparkflow.graph_utils`, which keeps its own name.
References that Spark pickles therefore name a module that every worker can import, with or without aliases.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from keraunos.compat.python2 import imports as python2
from keraunos.compat.run_unchanged import era, keras1, old_numpy, shadows
from keraunos.compat.run_unchanged.original_modules import modules_below
from keraunos.compat.run_unchanged.systems import System


def install_on_driver(system: System) -> None:
    """`install`, and what only a driver has use for."""
    install(system)
    if system.dated:
        from keraunos.compat.run_unchanged import spark1

        spark1.install()
    if system.on_driver is not None:
        named(system.on_driver)()


def named(target: str) -> Any:
    """Returns the object of `module:attribute`, or the module."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


def install(system: System) -> None:
    """Let this process's imports find the system's names. Once is enough; another system's names add to them."""
    if system.aliases or system.fallbacks:
        sys.meta_path.insert(0, AliasFinder(system))
    if system.shadows:
        shadows.install(system.shadows)
    if system.keras_of:
        era.enter(system.keras)
        keras1.install()
    if system.name:
        old_numpy.install()
        python2.install(beside=system.python2)


class AliasFinder(MetaPathFinder):
    """Finds a system's modules, and says so if a system had one that Keraunos lacks."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._prefixes: Mapping[str, str] = {**system.aliases, **system.fallbacks}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the module's spec if its first name is one of the system's."""
        root, dot, rest = fullname.partition(".")
        if root not in self._prefixes or (root in self._system.fallbacks and _has_its_own(root)):
            return None
        name = self._prefixes[root] + dot + rest
        if find_spec(name) is None:
            raise ModuleNotFoundError(self._missing(fullname, name), name=fullname)
        module = import_module(name)
        return ModuleSpec(fullname, _Given(module), is_package=hasattr(module, "__path__"))

    def _missing(self, fullname: str, name: str) -> str:
        package = fullname.rpartition(".")[0]
        known = modules_below(package)
        if known is None:
            parent = import_module(name.rpartition(".")[0])
            known = sorted(f"{package}.{found.name}" for found in iter_modules(parent.__path__))
        return (
            f"No module named {fullname!r}: Keraunos has no part of {self._system.name} of that name. "
            f"There are: {', '.join(known) or 'none beside it'}."
        )


class _Given(Loader):
    """Loads a module that is there already, without leaving a mark on it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec: Any = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has written its own there


def _has_its_own(root: str) -> bool:
    """Returns whether the program, or an installed package, brings a module of that name; a mere folder is none."""
    found = PathFinder.find_spec(root)
    return found is not None and found.loader is not None
