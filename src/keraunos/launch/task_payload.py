"""What a task needs besides the job's secrets, kept apart from them. Runs on the driver; `unpacked` on executors.

PySpark puts a task's closure above a size, 1 MB unless set otherwise, into a file in Spark's local directory. Secrets
are in that closure, so nothing large may be: custom code and functions of the user's travel in their own broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.serializers import CloudPickleSerializer

from keraunos.errors import ClusterError
from keraunos.session.session import Session

_THRESHOLD = "spark.broadcast.UDFCompressionThreshold"
# What a closure may hold of it, and what else is in one: the names of a few functions, and the connection.
_MOST_INLINE = 64 << 10
_CLOSURE_BYTES = 16 << 10

Packed: TypeAlias = bytes | Any  # the bytes themselves, or a Broadcast of them; pyspark is used untyped


@dataclass(frozen=True)
class Payload:
    """What every task of a job is given.

    Attributes:
        place: the threads of a task, and how many workers a host has.
        names: those of the columns that it reads.
        custom_objects: the user's own classes and functions.
        before: what Spark would run on an RDD's partition first: its number and its records in, records out.
    """

    place: Mapping[str, Any]
    names: tuple[str, ...]
    custom_objects: Mapping[str, Any] | None
    before: Callable[[int, Iterable[Any]], Iterable[Any]] | None = None


@contextmanager
def packed(session: Session, payload: Payload) -> Iterator[Packed]:
    """The payload for a closure: by itself where it is small, or else as a broadcast that ends with this context.

    Spark notes in the calling thread which broadcasts of the user's the payload refers to, for the next function that
    it wraps. Wrap the function that takes the payload next.
    """
    threshold = session.largest_closure()
    if threshold < 2 * _CLOSURE_BYTES:
        raise ClusterError(
            f"{_THRESHOLD} must be at least {2 * _CLOSURE_BYTES} bytes: Spark writes the code of larger tasks to a "
            f"file, and the secrets of a fit are in it. Received: {threshold}. Leave it out: Spark takes 1 MB then."
        )
    content = CloudPickleSerializer().dumps(payload)
    if len(content) <= min(_MOST_INLINE, threshold - _CLOSURE_BYTES):
        yield content
        return
    broadcast = session.broadcast(content)
    try:
        yield broadcast
    finally:
        if not session.is_stopped():
            broadcast.destroy()


def unpacked(content: Packed) -> Payload:
    """The payload, on an executor."""
    data = content if isinstance(content, bytes) else content.value
    payload: Payload = CloudPickleSerializer().loads(data)
    return payload
