"""Keeps what frameworks bring out of garbage collections. Runs on workers.

PySpark's daemon collects garbage after each task, and a collection looks at every object there is. A framework brings
hundreds of thousands that live as long as the process: with one loaded, a task that does nothing costs a quarter of a
second. Models are collected as usual: they come and go, and have cycles.
"""

from __future__ import annotations

import gc
import sys

_FRAMEWORKS = frozenset({"jax", "tensorflow", "torch"})

_settled: set[str] = set()


def settle() -> None:
    """Keep all objects that are here out of collections, if a framework was imported since this was last called.

    What is garbage by now is collected first. A process has so many frameworks, so this happens a few times at most.
    """
    loaded = _FRAMEWORKS & sys.modules.keys()
    if loaded <= _settled:
        return
    _settled.update(loaded)
    gc.collect()
    gc.freeze()
