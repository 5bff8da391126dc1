"""Compares the job that a directory of checkpoints belongs to with the current job. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_SHOWN = 72
_BEFORE_DIFFERENCE = 24


def differences(kept: Mapping[str, Any], asked: Mapping[str, Any], may_differ: Collection[str]) -> list[str]:
    """Returns a line for every entry that differs and may not, with both values.

    Those of mappings are named `outer.inner`.
    """
    old, new = dict(_entries(kept)), dict(_entries(asked))
    lines = []
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name, "nothing"), new.get(name, "nothing")
        if before != now and not any(name == each or name.startswith(f"{each}.") for each in may_differ):
            lines.append(f"{name}: {_shown(before, now)} there, {_shown(now, before)} now")
    return lines


def _entries(identity: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields every entry as its name and its JSON: as text NaN equals NaN, and 1 does not equal True."""
    for name, value in identity.items():
        if isinstance(value, Mapping) and value:
            yield from _entries(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", json.dumps(value, sort_keys=True)


def _shown(text: str, other: str) -> str:
    """Returns the text or, if it is long, the part in which the two differ."""
    if len(text) <= _SHOWN:
        return text
    same = next((place for place, (one, two) in enumerate(zip(text, other)) if one != two), min(len(text), len(other)))
    start = max(0, min(same - _BEFORE_DIFFERENCE, len(text) - _SHOWN))
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''} ({len(text)} characters)"
