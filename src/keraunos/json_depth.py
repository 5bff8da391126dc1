"""How deeply JSON of a file may be nested. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

MOST_LEVELS = 200


def check_depth(found: Any) -> Any:
    """Returns the same value.

    raises `ValueError` if it is nested so deeply that a recursive function would fail.
    """
    level = [found]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return found
    raise ValueError(f"it is nested in more than {MOST_LEVELS} levels")
