"""Python 2's `sets`, from before there were sets. Runs on the driver and on executors."""

from __future__ import annotations

Set = set
ImmutableSet = frozenset

__all__ = ["ImmutableSet", "Set"]
