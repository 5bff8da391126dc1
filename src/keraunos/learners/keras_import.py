"""Importing Keras. Runs on the driver and on workers.

It takes no more time than a process needs that was started to train or to predict, and the error says what to do where
Keras's backend is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

from keraunos.backends import forget_failed_import, why_keras_failed
from keraunos.errors import ClusterError

# All of scikit-learn comes with it: a third of what importing Keras takes.
_WRAPPERS = "keras.wrappers"


def import_keras() -> Any:
    """The module. Its wrappers for scikit-learn, where it is not imported yet, are when somebody first uses them.

    Raises:
        ClusterError: where Keras is set to run on a backend that is not installed.
    """
    forget_failed_import()
    finder = _Later()
    sys.meta_path.insert(0, finder)
    try:
        import keras
    except (ImportError, ValueError) as error:
        reason = why_keras_failed()
        if reason is None:
            raise
        raise ClusterError(reason) from error
    finally:
        sys.meta_path.remove(finder)
    return keras


class _Later(MetaPathFinder):
    """Finds the wrappers as everybody does, and loads them later."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _WRAPPERS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
