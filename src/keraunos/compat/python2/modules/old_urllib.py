"""Python 2's `urllib` and `urllib2`, whose contents are in `urllib.request`, `parse` and `error` today.

Runs on the driver and on executors.
"""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from typing import Any

_PLACES = (urllib.request, urllib.parse, urllib.error)


def __getattr__(name: str) -> Any:
    for place in _PLACES:
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"urllib of Python 2 has no attribute {name!r} that is left in Python 3's urllib.")


__all__ = sorted({name for place in _PLACES for name in dir(place) if not name.startswith("_")})  # noqa: PLE0605 - names
