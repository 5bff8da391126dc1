"""TensorBoard's event files, written and read without TensorFlow. Runs on the driver.

A file is a sequence of records: the length, its checksum, the bytes, their checksum. The bytes are an `Event` protobuf
with a time, a step and a summary: a scalar, or a histogram. Both formats are small and have not changed since 2015, so
this module writes them without a dependency.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from keraunos.errors import DataError

_VERSION = b"brain.Event:2"
_NUMBERS = itertools.count()
_GATHERED = 1 << 16
# TensorBoard's own buckets: powers of 1.1 on both sides of zero.
_FIRST_LIMIT, _GROWTH, _LAST_LIMIT = 1e-12, 1.1, 1e20


class EventWriter:
    """One event file in `folder`, which is created with the first event.

    Events are buffered and appended from time to time, so that no file stays open. They can be read after `flush` or
    `close`, and at the latest when the writer is garbage-collected. One thread writes.
    """

    def __init__(self, folder: str | Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = Path(folder)
        self._clock = clock
        self._gathered = _Pending()
        weakref.finalize(self, self._gathered.append)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Add a scalar."""
        self._add(_bytes(1, tag.encode()) + _tag(2, 5) + struct.pack("<f", float(value)), step)

    def add_histogram(self, tag: str, values: npt.ArrayLike, step: int) -> None:
        """Add a histogram of the finite values of an array."""
        self._add(_bytes(1, tag.encode()) + _bytes(5, _histogram(np.asarray(values))), step)

    def flush(self) -> None:
        """Write the buffered events to the file."""
        self._gathered.append()

    def close(self) -> None:
        """Write the remaining events; another event would start a new file."""
        self._gathered.append()
        self._gathered.path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, value: bytes, step: int) -> None:
        now = self._clock()
        if self._gathered.path is None:
            self._gathered.path = self._begun(now)
        event = _tag(1, 1) + struct.pack("<d", now) + _tag(2, 0) + _varint(int(step)) + _bytes(5, _bytes(1, value))
        self._gathered.events += _record(event)
        if len(self._gathered.events) >= _GATHERED:
            self._gathered.append()

    def _begun(self, now: float) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        # Names sort by time and are unique, even for two writers in one second or one process.
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{next(_NUMBERS)}"
        self._gathered.events += _record(_tag(1, 1) + struct.pack("<d", now) + _bytes(3, _VERSION))
        return self.folder / name


class _Pending:
    """Buffered events that are not in the file yet."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.events = bytearray()

    def append(self) -> None:
        if self.path is not None and self.events:
            with self.path.open("ab") as file:
                file.write(self.events)
            self.events.clear()


def read_scalars(folder: str | Path, tag: str) -> npt.NDArray[np.float64]:
    """Returns the scalars of a tag in a folder's event files: rows of step, value, time, in order of writing."""
    found = []
    for event in read_events(folder):
        for name, value in event.scalars:
            if name == tag:
                found.append((event.step, value, event.time))
    return np.array(found, dtype=np.float64).reshape(-1, 3)


class ReadEvent:
    """One event of a file: its time, step and scalars."""

    __slots__ = ("scalars", "step", "time")

    def __init__(self, data: bytes) -> None:
        self.time = 0.0
        self.step = 0
        self.scalars: list[tuple[str, float]] = []
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                (self.time,) = struct.unpack("<d", value)
            elif field == 2 and isinstance(value, int):
                self.step = value - (1 << 64) if value >= 1 << 63 else value
            elif field == 5 and isinstance(value, bytes):
                self.scalars += _scalars(value)


def read_events(folder: str | Path) -> Iterator[ReadEvent]:
    """Yields the events of a folder's files, those of the oldest file first.

    An end that is still being written is left.
    """
    for path in sorted(Path(folder).glob("[!._]*tfevents*")):
        with path.open("rb") as file:
            for data in _records(file):
                yield ReadEvent(data)


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    for field, value in _fields(summary):
        if field != 1 or not isinstance(value, bytes):
            continue
        parts = dict(_fields(value))
        name = parts.get(1)
        if not isinstance(name, bytes):
            continue
        simple, tensor = parts.get(2), parts.get(8)
        if isinstance(simple, bytes):
            yield name.decode(), struct.unpack("<f", simple)[0]
        elif isinstance(tensor, bytes):
            yield from ((name.decode(), number) for number in _scalar_tensor(tensor))


def _scalar_tensor(tensor: bytes) -> Iterator[float]:
    """Yields the number in a float tensor without dimensions, which is how TensorFlow 2 writes a scalar."""
    parts = dict(_fields(tensor))
    values = parts.get(5)
    content = parts.get(4)
    if parts.get(1) == 1 and isinstance(values, bytes) and len(values) == 4:
        yield struct.unpack("<f", values)[0]
    elif parts.get(1) == 1 and isinstance(content, bytes) and len(content) == 4:
        yield struct.unpack("<f", content)[0]


def _histogram(values: npt.NDArray[Any]) -> bytes:
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        flat = np.zeros(0)
        limits, counts = np.array([_LAST_LIMIT]), np.array([0.0])
    else:
        limits, counts = _buckets(flat)
    numbers = (
        float(flat.min()) if flat.size else 0.0,
        float(flat.max()) if flat.size else 0.0,
        float(flat.size),
        float(flat.sum()),
        float(np.dot(flat, flat)),
    )
    encoded = b"".join(_tag(field, 1) + struct.pack("<d", each) for field, each in enumerate(numbers, start=1))
    return encoded + _bytes(6, limits.astype("<f8").tobytes()) + _bytes(7, counts.astype("<f8").tobytes())


def _buckets(flat: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Returns the upper ends of the buckets from the first that holds something to the last, and what each holds."""
    count = int(np.ceil(np.log(_LAST_LIMIT / _FIRST_LIMIT) / np.log(_GROWTH)))
    positive = _FIRST_LIMIT * _GROWTH ** np.arange(count + 1)
    limits = np.concatenate([-positive[::-1], [0.0], positive, [np.finfo(np.float64).max]])
    places = np.searchsorted(limits, flat, side="right")
    counts = np.bincount(np.minimum(places, limits.size - 1), minlength=limits.size).astype(np.float64)
    held = np.flatnonzero(counts)
    # One empty bucket before the first is what its lower end is read from.
    first = max(0, int(held[0]) - 1)
    return limits[first : held[-1] + 1], counts[first : held[-1] + 1]


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _records(file: BinaryIO) -> Iterator[bytes]:
    while len(head := file.read(12)) == 12:
        (length,) = struct.unpack("<Q", head[:8])
        if struct.unpack("<I", head[8:])[0] != _masked(head[:8]):
            raise DataError(
                f"An event file must be a sequence of records with checksums. Received: {file.name!r}, damaged at byte "
                f"{file.tell() - 12}. Remove the file."
            )
        data, check = file.read(length), file.read(4)
        if len(check) < 4:
            return
        if struct.unpack("<I", check)[0] != _masked(data):
            raise DataError(
                f"An event file's records must match their checksums. Received: {file.name!r}, damaged at byte "
                f"{file.tell() - 4 - length}. Remove the file."
            )
        yield data


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the fields of a protobuf message: a whole number, or the bytes of anything else."""
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        kind = key & 7
        if kind == 0:
            number, place = _read_varint(data, place)
            yield key >> 3, number
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            size, place = _read_varint(data, place)
        yield key >> 3, data[place : place + size]
        place += size


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _bytes(field: int, value: bytes) -> bytes:
    return _tag(field, 2) + _varint(len(value)) + value


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def _masked(data: bytes) -> int:
    """Returns the checksum of a record: CRC-32C, turned and shifted so that checksums of checksums differ."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
