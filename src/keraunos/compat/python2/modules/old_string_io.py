"""Python 2's `StringIO` and `cStringIO`: a file in memory, of text or of bytes. Runs on the driver and on executors."""

from __future__ import annotations

import io

__all__ = ["StringIO"]


def StringIO(initial: str | bytes = "") -> io.StringIO | io.BytesIO:
    """Returns a file that holds what it is given: of bytes, where bytes are given."""
    return io.StringIO(initial) if isinstance(initial, str) else io.BytesIO(initial)
