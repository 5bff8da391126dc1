"""Messages as frames: a typed header, a small JSON body, and at most one raw buffer. Runs on both sides.

Nothing is pickled and nothing that arrives is trusted: `decode` refuses whatever is not a message of a known kind
with fields in range, and the caller counts and drops it. A vector travels in chunks of about 1 MB, each a message
of its own, into buffers that both sides keep.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

CHUNK_BYTES = 1 << 20
MAX_BODY_BYTES = 1 << 20
MAX_RANK = 1 << 20
MAX_COUNTER = 1 << 62

# The reason in a STOP for a worker whose rank a newer incarnation has.
SUPERSEDED = "superseded"
# The reason in a STOP or a REFUSED for a worker that the others go on without.
LEFT_OUT = "the training goes on without this rank, which was away for too long"

_HEADER = struct.Struct("!4sBIQQQQ")
_MAGIC = b"KRN3"
_SEAL_BYTES = 16


class Kind(IntEnum):
    """What a message is about.

    Below 32 a member speaks to the coordinator, from 32 on the coordinator does; from 64 on a worker speaks to the
    server of a slice, from 96 on such a server does.
    """

    HELLO = 1
    FETCH = 2
    READY = 3
    REPORT = 4
    LAP = 5
    PARAMETERS = 6
    STATE = 7
    NORM = 8
    FAILED = 9
    DONE = 10
    BYE = 11
    ASK = 12
    LOSSES = 13
    PULSE = 14
    STACKS = 15
    GOT = 16
    MISSED = 17
    DIVERGED = 20

    WELCOME = 32
    BLOB = 33
    START = 34
    GO = 35
    STOP = 36
    ALIVE = 37
    UPLOAD = 38
    SNAPSHOT = 39
    TOTAL_NORM = 40
    RELEASE = 41
    HELD = 42
    PROBE = 43
    REMOVE = 44
    SAVE = 45
    RECALL = 50

    JOIN = 64
    PUSH = 65
    PASS = 66
    LEAVE = 67
    AGAIN = 68

    JOINED = 96
    RESULT = 97
    REFUSED = 98
    RESEND = 99


class WireError(ValueError):
    """The frames are not a message."""


# What reading a message may raise that is not what it seems to be. numpy parses the names of types as Python.
MALFORMED = (
    ArithmeticError, AttributeError, BufferError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `offset` is the place of `payload` in the vector it is a chunk of, in elements.

    `number` counts the letters of a connection (see `letters`); 0 is a message that may be lost.
    """

    kind: Kind
    rank: int = 0
    incarnation: int = 0
    round: int = 0
    offset: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    payload: memoryview | npt.NDArray[Any] | None = None
    number: int = 0

    def encode(self, key: bytes = b"") -> list[Any]:
        """The frames that `decode` reads with the same key."""
        header = _HEADER.pack(_MAGIC, self.kind, self.rank, self.incarnation, self.round, self.offset, self.number)
        body = json.dumps(self.body).encode() if self.body else b""
        frames: list[Any] = [header + _seal(key, header, body), body]
        if self.payload is not None:
            frames.append(self.payload)
        return frames


def decode(frames: Sequence[Any], key: bytes = b"") -> Message:
    """The message in `frames`, or a `WireError`; so is one that was not sealed with `key`."""
    if not 2 <= len(frames) <= 3:
        raise WireError(f"a message has 2 or 3 frames, not {len(frames)}")
    sealed, body = memoryview(frames[0]), memoryview(frames[1])
    if sealed.nbytes != _HEADER.size + _SEAL_BYTES:
        raise WireError(f"a header has {_HEADER.size + _SEAL_BYTES} bytes, not {sealed.nbytes}")
    header = sealed[: _HEADER.size]
    if body.nbytes > MAX_BODY_BYTES:
        raise WireError(f"a body has at most {MAX_BODY_BYTES} bytes, not {body.nbytes}")
    if not hmac.compare_digest(sealed[_HEADER.size :], _seal(key, header, body)):
        raise WireError("a header or body is not as it was sent")
    magic, kind, rank, incarnation, round_, offset, number = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise WireError("not a message of this protocol")
    if rank > MAX_RANK or max(incarnation, round_, offset, number) > MAX_COUNTER:
        raise WireError("a header field is out of range")
    try:
        message_kind = Kind(kind)
        fields = json.loads(bytes(body)) if body.nbytes else {}
    except (ValueError, RecursionError) as error:
        raise WireError(f"kind or body cannot be read: {error}") from None
    if not isinstance(fields, dict):
        raise WireError("a body is a JSON object")
    payload = memoryview(frames[2]) if len(frames) == 3 else None
    return Message(message_kind, rank, incarnation, round_, offset, fields, payload, number)


def _seal(key: bytes, header: Any, body: Any) -> bytes:
    """What only a holder of the key can make, and only for these bytes. Payloads are the sender's own affair."""
    seal = hashlib.blake2b(header, digest_size=_SEAL_BYTES, key=key[: hashlib.blake2b.MAX_KEY_SIZE])
    seal.update(body)
    return seal.digest()


def chunks(length: int, itemsize: int) -> list[tuple[int, int]]:
    """Where a vector is cut: (start, stop) in elements, each of about `CHUNK_BYTES`; one empty chunk for length 0."""
    step = max(1, CHUNK_BYTES // itemsize)
    return [(start, min(length, start + step)) for start in range(0, max(length, 1), step)]


def chunk_at(offset: int, length: int, itemsize: int) -> tuple[int, int]:
    """The chunk of a vector that starts at `offset`; a `WireError` where none does."""
    step = max(1, CHUNK_BYTES // itemsize)
    if offset % step or not 0 <= offset < max(length, 1):
        raise WireError(f"no chunk of a vector of {length} elements starts at {offset}")
    return offset, min(length, offset + step)


def pack_arrays(arrays: Sequence[npt.NDArray[np.float64]]) -> tuple[list[list[int]], npt.NDArray[np.float64]]:
    """Shapes and one buffer for a list of float64 arrays."""
    shapes = [list(array.shape) for array in arrays]
    flat = [np.ravel(np.asarray(array, dtype=np.float64)) for array in arrays]
    return shapes, np.concatenate(flat) if flat else np.empty(0)


def pack_typed(arrays: Sequence[npt.NDArray[Any]]) -> tuple[list[list[Any]], npt.NDArray[np.uint8]]:
    """Types and shapes, and one buffer, for a list of arrays of any numeric types."""
    described = [[str(array.dtype), list(array.shape)] for array in arrays]
    flat = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
    return described, np.concatenate(flat) if flat else np.empty(0, np.uint8)


def unpack_typed(described: Any, buffer: Any) -> list[npt.NDArray[Any]]:
    """The arrays that `pack_typed` packed; a `WireError` where description and buffer do not agree."""
    try:
        arrays, place = [], 0
        view = memoryview(buffer)
        for dtype, shape in described:
            kind = np.dtype(dtype)
            count = int(np.prod(shape, dtype=np.int64))
            end = place + count * kind.itemsize
            arrays.append(np.frombuffer(view[place:end], dtype=kind, count=count).reshape(shape))
            place = end
    except MALFORMED as error:
        raise WireError(f"arrays cannot be read: {error}") from None
    if place != view.nbytes:
        raise WireError(f"arrays have {place} bytes, not {view.nbytes}")
    return arrays


def unpack_arrays(shapes: Any, buffer: Any) -> list[npt.NDArray[np.float64]]:
    """The arrays that `pack_arrays` packed; a `WireError` where shapes and buffer do not agree."""
    try:
        flat = np.frombuffer(buffer if buffer is not None else b"", dtype=np.float64)
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
        if sum(sizes) != flat.size or any(size < 0 for size in sizes):
            raise ValueError(f"shapes {shapes} need {sum(sizes)} values, not {flat.size}")
        parts = np.split(flat, np.cumsum(sizes)[:-1]) if sizes else []
        return [part.reshape(shape).copy() for part, shape in zip(parts, shapes, strict=True)]
    except MALFORMED as error:
        raise WireError(f"arrays cannot be read: {error}") from None
