"""Python 2's `math`, whose `floor` and `ceil` return floats. Runs on the driver and on executors."""

from __future__ import annotations

import math
from math import *  # noqa: F403 - a program's star import finds what was there
from typing import Any


class _Whole(float):
    """A float without a fraction; places and counts may be given as one, as they were."""

    __slots__ = ()

    def __index__(self) -> int:
        return int(self)

    def __reduce__(self) -> Any:
        return float, (float(self),)


def _whole(value: float) -> float:
    return _Whole(value) if math.isfinite(value) else value


def floor(x: Any) -> float:  # type: ignore[no-redef]  # in place of what is imported
    """Returns the largest whole number that is not above, as a float."""
    value = float(x)
    return _whole(math.floor(value)) if math.isfinite(value) else value


def ceil(x: Any) -> float:  # type: ignore[no-redef]  # in place of what is imported
    """Returns the smallest whole number that is not below, as a float."""
    value = float(x)
    return _whole(math.ceil(value)) if math.isfinite(value) else value
