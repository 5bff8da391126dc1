"""Python 2's `pickle` and `cPickle`. Runs on the driver and on executors.

Files were opened as text, and text was bytes; what Python 2 has pickled holds numbers as text in Latin 1.
"""

from __future__ import annotations

import pickle
from typing import Any

# What a program's star import finds.
__all__ = list(pickle.__all__)


def load(file: Any) -> Any:
    """Returns the content of a file that any Python has written."""
    return pickle.load(getattr(file, "buffer", file), encoding="latin1")  # noqa: S301 - the program's own


def loads(string: Any) -> Any:
    """Returns the content of a pickle that any Python has made."""
    content = string.encode("latin1") if isinstance(string, str) else string
    return pickle.loads(content, encoding="latin1")  # noqa: S301 - the program's own


def dump(obj: Any, file: Any, protocol: int | None = None) -> None:
    """Write a pickle; also into a file that was opened as text."""
    pickle.dump(obj, getattr(file, "buffer", file), protocol)


def __getattr__(name: str) -> Any:
    return getattr(pickle, name)
