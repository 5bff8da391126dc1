"""Two RDDs as one, whose partitions each hold a part of both. Runs on the driver.

A fit reads one RDD. Rows to validate on that come as another one are put beside those to train on, so that every worker
has some of each. Nothing is shuffled: partitions are only taken together.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark import RDD

from keraunos.session.registry import session_of


def with_marks(training: RDD[Any], validation: RDD[Any], parts: int) -> RDD[Any]:
    """The records of both with one more entry, which is true for those to validate on, in so many partitions.

    Records are sequences. Each partition holds whole partitions of both RDDs; where one of them has fewer than `parts`,
    the last ones have nothing of it.
    """
    marked = [
        _in_parts(rdd.mapPartitions(functools.partial(_marked, mark)), parts)
        for rdd, mark in ((training, False), (validation, True))
    ]
    session = session_of(training)
    together = []
    for number in range(parts):
        pieces = [session.partition(rdd, number) for rdd in marked if number < rdd.getNumPartitions()]
        together.append(session.union(pieces).coalesce(1) if len(pieces) > 1 else pieces[0])
    return session.union(together)


def _marked(mark: bool, records: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    return ((*record, mark) for record in records)


def _in_parts(rdd: RDD[Any], parts: int) -> RDD[Any]:
    return rdd.coalesce(parts) if rdd.getNumPartitions() > parts else rdd
