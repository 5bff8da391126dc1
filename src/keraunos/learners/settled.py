"""Keeps what frameworks bring out of garbage collections. Runs on workers.

PySpark's daemon collects garbage after each task, and a collection looks at every object there is. A framework brings
hundreds of thousands that live as long as the process: with one loaded, a task that does nothing costs a quarter of a
second.
"""

from __future__ import annotations

import gc
import sys

_FRAMEWORKS = frozenset({"jax", "tensorflow", "torch"})

_settled: set[str] = set()


def settle() -> None:
    """Keep all objects that are here out of collections, if a framework was imported since this was last called.

    Called when a task has done its work: of what is there then, hardly anything but imports and models that are kept
    could become garbage that only a collection finds. What is garbage by now is collected first.
    """
    loaded = _FRAMEWORKS & sys.modules.keys()
    if loaded <= _settled:
        return
    _settled.update(loaded)
    gc.collect()
    gc.freeze()


def thaw() -> None:
    """Let collections look at everything again, until the next `settle`: a model that was kept has been given up."""
    _settled.clear()
    gc.unfreeze()
