"""Rows that are read several times, kept by Spark meanwhile. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import RDD, StorageLevel


@contextmanager
def kept(data: Any) -> Iterator[None]:
    """Let Spark keep a DataFrame or an RDD, in memory or on disk; what its user keeps already is left to the user."""
    level = data.getStorageLevel() if isinstance(data, RDD) else data.storageLevel
    if level.useMemory or level.useDisk:
        yield
        return
    data.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        data.unpersist()
