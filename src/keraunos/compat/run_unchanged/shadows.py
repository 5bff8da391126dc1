"""Packages that mean one thing to a program and another to everybody else. Runs on the driver and on workers.

A program for TensorFlow 1.x says `import tensorflow as tf` and means 1.x. TensorFlow's own modules, Keras and ours say
the same and mean what is installed. An import statement calls `builtins.__import__` from where it stands, so it is
there that the two can be told apart; a finder on `sys.meta_path` is asked once per process and never learns who asks,
and a changed entry in `sys.modules` is everybody's.

Code is the program's unless it lies where packages are installed: the script, the modules beside it, and functions
that Spark has unpickled.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any

from keraunos.compat.run_unchanged.places import is_library, lies_outside_packages

_plain_import = builtins.__import__
_shadows: dict[str, str] = {}


def install(shadows: Mapping[str, str]) -> None:
    """Show a program the shadows instead of the packages of these names, from its next import on."""
    if not _shadows:
        builtins.__import__ = _importing_by_caller(builtins.__import__)
        importlib.import_module = _import_module_by_caller(importlib.import_module)
    _shadows.update(shadows)


def is_programs(namespace: Mapping[str, Any]) -> bool | None:
    """Returns whether globals are those of the program's code or of an installed package's.

    `None` if nothing shows.
    """
    name = str(namespace.get("__name__") or "")
    if name == "__main__":
        return True
    if is_library(name):
        return False
    file = namespace.get("__file__")
    return None if file is None else lies_outside_packages(str(file))


def _asked_by_program(frame: FrameType | None) -> bool:
    """Returns whether the program's code runs in the frame; code that was made up on the spot is its maker's."""
    while frame is not None:
        decided = is_programs(frame.f_globals)
        if decided is not None:
            return decided
        frame = frame.f_back
    return True


def _importing_by_caller(original: Callable[..., Any]) -> Callable[..., Any]:
    def import_for_caller(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the name that Python calls it by
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - the same
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and name.partition(".")[0] in _shadows and _asked_by_program(sys._getframe(1)):
            return _imported(name, fromlist or ())
        return original(name, globals, locals, fromlist, level)

    return import_for_caller


def _import_module_by_caller(original: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
    def import_module_for_caller(name: str, package: str | None = None) -> ModuleType:
        if name.partition(".")[0] in _shadows and _asked_by_program(sys._getframe(1)):
            return _walked(name)
        return original(name, package)

    return import_module_for_caller


def _imported(name: str, fromlist: Sequence[str]) -> ModuleType:
    """The result of an import statement: the first package of a dotted name, or the last one for `from` imports."""
    module = _walked(name)
    if not fromlist:
        return _shadow(name.partition(".")[0])
    for part in fromlist:
        if part != "*":
            try:
                _part(module, part)
            except AttributeError as error:
                raise ImportError(f"cannot import name {part!r} from {name!r}: {error}", name=name) from None
    return module


def _walked(name: str) -> ModuleType:
    root, *parts = name.split(".")
    module = _shadow(root)
    for part in parts:
        try:
            module = _part(module, part)
        except AttributeError as error:
            raise ModuleNotFoundError(f"No module named {name!r}: {error}", name=name) from None
    return module


def _shadow(root: str) -> ModuleType:
    return _loaded(_shadows[root])


def _loaded(name: str) -> ModuleType:
    """Returns the module of that name. Unlike `import_module`, this leaves no lines of importlib in a traceback."""
    _plain_import(name)
    return sys.modules[name]


def _part(module: ModuleType, name: str) -> Any:
    """Returns an attribute of the module, which may be a submodule that is not imported yet."""
    try:
        return getattr(module, name)
    except AttributeError:
        full = f"{module.__name__}.{name}"
        if not hasattr(module, "__path__") or find_spec(full) is None:
            raise
        return _loaded(full)
