"""Importing Keras and TensorFlow. Runs on the driver and on workers.

Either brings much that a process which was started to train or to predict never uses: scikit-learn, Matplotlib, and
with TensorFlow all of Keras and JAX. Those are imported when somebody first uses them. The error says what to do where
Keras's backend is not installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

from keraunos.backends import forget_failed_import, why_keras_failed
from keraunos.errors import ClusterError
from keraunos.learners.between_tasks import keep_cheap

# The wrappers bring all of scikit-learn, the galleries all of Matplotlib: half of what importing Keras takes.
_ON_FIRST_USE = frozenset({"keras.src.visualization", "keras.visualization", "keras.wrappers"})
# TensorFlow's converters for phones take a function of JAX where it is installed, and one of Keras's callbacks mends an
# old JAX there. Each has the name beside it when it has asked.
_ASKING_FOR_JAX = {"tensorflow.lite.python.util": "_jit", "keras.src.callbacks.orbax_checkpoint": "OrbaxCheckpoint"}
_CONVERTERS = frozenset({"tensorflow.lite.python.util", "tensorflow.lite.python.lite"})


def import_keras() -> Any:
    """The module.

    Raises:
        ClusterError: where Keras is set to run on a backend that is not installed.
    """
    keep_cheap()
    forget_failed_import()
    try:
        with _little():
            return importlib.import_module("keras")
    except (ImportError, ValueError) as error:
        reason = why_keras_failed()
        if reason is None:
            raise
        raise ClusterError(reason) from error


def import_tensorflow() -> Any:
    """The module; `tensorflow.keras` is imported when somebody first uses it."""
    keep_cheap()
    with _little(without_keras="tensorflow" not in sys.modules):
        return importlib.import_module("tensorflow")


@contextmanager
def _little(*, without_keras: bool = False) -> Iterator[None]:
    finder = _Later(without_keras=without_keras)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if finder.jax_was_refused:
            for name in _CONVERTERS & sys.modules.keys():
                sys.modules[name]._jit = _jit  # type: ignore[attr-defined]


class _Later(MetaPathFinder):
    """Finds modules as everybody does; some are loaded when they are used, and some another time."""

    def __init__(self, *, without_keras: bool) -> None:
        self.without_keras = without_keras
        self.jax_was_refused = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _ON_FIRST_USE:
            return _found(fullname, path, target, LazyLoader)
        if fullname == "keras" and self.without_keras:
            # TensorFlow looks where it lies, and imports it last of all, if it can.
            return _found(fullname, path, target, _NotNow)
        if fullname == "jax" and _is_asked_for_in_passing():
            self.jax_was_refused = PathFinder.find_spec(fullname, path, target) is not None
            raise ModuleNotFoundError("JAX is imported when somebody uses it.", name=fullname)
        return None


class _NotNow(Loader):
    """In the place of the loader that a module has."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise ImportError(f"{spec.name} is imported when somebody uses it.", name=spec.name)


def _found(
    name: str, path: Sequence[str] | None, target: ModuleType | None, loader: Callable[[Any], Loader]
) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path, target)
    if spec is not None and spec.loader is not None:
        spec.loader = loader(spec.loader)
    return spec


def _is_asked_for_in_passing() -> bool:
    return any(name in sys.modules and not hasattr(sys.modules[name], then) for name, then in _ASKING_FOR_JAX.items())


def _jit(*arguments: Any, **named: Any) -> Any:
    return importlib.import_module("jax").jit(*arguments, **named)
