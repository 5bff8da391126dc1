"""Checks of what BigDL's constructors are given. Runs on the driver."""

from __future__ import annotations

import math
from typing import Any

from keraunos.errors import JobError


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Returns the value as a finite number within the bounds that are given."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not plain and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        # A numpy scalar is what a program computes a rate as.
        value = value.item()
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    bounds = {"of at least": least, "above": above, "of at most": most, "below": below}
    within = plain and math.isfinite(value) and (least is None or value >= least) and (above is None or value > above)
    if not within or (most is not None and value > most) or (below is not None and value >= below):
        span = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
        raise JobError(f"`{name}` must be a number{f' {span}' if span else ''}. Received: {value!r}.")
    return float(value)


def whole(name: str, value: Any, *, least: int = 1) -> int:
    """Returns the value as a whole number of at least `least`."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise JobError(f"`{name}` must be a whole number of at least {least}. Received: {value!r}.")
    return value


def float_type(value: Any) -> None:
    """Refuse a numeric type other than the one that parameters have here."""
    if value != "float":
        raise JobError(
            f"`bigdl_type` must be 'float': parameters have the type that the graph gives them. Received: {value!r}."
        )
