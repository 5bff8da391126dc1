"""Names that a program uses without having made them, made when they are used. Runs on the driver.

Python looks a name up in a module's globals and then in its builtins, also inside functions. The globals must be a
plain dict, the builtins need not: a missing name is made there. A program that never uses `spark`, or that makes a
context of its own, never starts ours.
"""

from __future__ import annotations

import builtins
import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from keraunos.compat.run_unchanged.aliases import named
from keraunos.compat.run_unchanged.systems import System


class LazyBuiltins(dict[str, Any]):
    """Builtins of one module, which make some more names the first time they are asked for."""

    def __init__(self, namespace: dict[str, Any], makers: Mapping[str, Callable[[], Any]]) -> None:
        # A copy: parts of the interpreter look into the dict itself.
        super().__init__(vars(builtins))
        self._namespace = namespace
        self._makers = makers

    def __missing__(self, name: str) -> Any:
        if name in self._makers:
            # From now on a global of the module like any other; functions that refer to it can be pickled, too.
            self._namespace[name] = self._makers[name]()
            return self._namespace[name]
        return vars(builtins)[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(builtins, name)  # in a script, `__builtins__` is the module


def give_names(namespace: dict[str, Any], system: System) -> None:
    """Let code that runs in the namespace use the system's names and Spark's usual ones."""
    makers: dict[str, Callable[[], Any]] = {"sc": _context, "spark": _session, "sqlContext": _sql_context}
    for name, target in system.names.items():
        makers[name] = functools.partial(named, target)
    namespace["__builtins__"] = LazyBuiltins(namespace, makers)


def _session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _context() -> Any:
    from pyspark import SparkContext

    return SparkContext.getOrCreate()


def _sql_context() -> Any:
    from pyspark.sql import SQLContext

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the program was written before there was anything else
        return SQLContext.getOrCreate(_context())
