"""Imports of a program's own modules, which may be for Python 2. Runs on the driver and on executors.

A module is the program's if it lies outside the folders where packages are installed. Packages are left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import ClassVar

from keraunos.compat.python2 import program
from keraunos.compat.run_unchanged import places


def install(*, beside: bool = False) -> None:
    """Let this process's imports translate modules for Python 2. Once is enough.

    Args:
        beside: whether the program itself is for Python 2: then its modules are, too, unless their source shows
            otherwise.
    """
    if beside:
        _TranslatingLoader.beside = True
    if not any(isinstance(finder, _TranslatingFinder) for finder in sys.meta_path):
        # Before Python's own finder, which would find the same files.
        at = next((n for n, finder in enumerate(sys.meta_path) if finder is PathFinder), len(sys.meta_path))
        sys.meta_path.insert(at, _TranslatingFinder())


@contextmanager
def installed(*, beside: bool = False) -> Iterator[None]:
    """The same for a while."""
    before, known = list(sys.meta_path), _TranslatingLoader.beside
    install(beside=beside)
    try:
        yield
    finally:
        _TranslatingLoader.beside = known
        for finder in [each for each in sys.meta_path if isinstance(each, _TranslatingFinder) and each not in before]:
            sys.meta_path.remove(finder)


class _TranslatingFinder(MetaPathFinder):
    """Finds what Python's own finder finds, and reads it otherwise if it is the program's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if places.is_library(fullname) or (path is not None and not any(map(places.lies_outside_packages, path))):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
            return None
        if not places.lies_outside_packages(spec.origin):
            return None
        spec.loader = _TranslatingLoader(spec.loader.name, spec.loader.path)
        return spec


class _TranslatingLoader(SourceFileLoader):
    """Loads a module's source. A translation is not stored in a file: Python would treat it as the module's own."""

    beside: ClassVar[bool] = False

    def get_code(self, fullname: str) -> CodeType | None:
        """Returns the module's code, translated if need be."""
        path = self.get_filename(fullname)
        package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
        read = program.read(self.get_data(path), path, package, beside=self.beside)
        return read.code if read.translated else super().get_code(fullname)
