"""Frames that claim to be messages, and what messages carry: nothing but `WireError` comes of those that are none."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.choices import Choices
from fuzz.json_values import INTEGERS, Values
from keraunos.exchange import wire
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.messages import content_of
from keraunos.exchange.wire import Kind, Message, WireError
from keraunos.parameters import Layout

_KEY = b"k" * 32
_WORDS = ("float32", "<f8", "bfloat16", "int8", "O", "V8", "U4", "M8[s]", "f4,f4", "(2,2)f4", "({", "3,", "S0", "f4,(")
_ARRAYS = [[["float32", [2, 2]], ["<i8", [1]], ["uint8", [8]]], [["float64", [4]]], [["bool", [32]]]]
_SHAPES = [[[2, 2]], [[4], [0]], [[1], [1], [2]], []]
_LAYOUT = Layout(("w",), ((40,),), trainable=1)


def one(data: bytes) -> None:
    """Read what the bytes stand for in one of several ways."""
    choices = Choices(data)
    ways = (_raw, _sealed_bytes, _sealed_fields, _typed, _arrays, _chunk, _payload)
    with contextlib.suppress(WireError):
        choices.pick(ways)(choices)


def seeds() -> Iterator[bytes]:
    """What makes each of the ways succeed, and fail."""
    for way in range(7):
        yield bytes([way])
        yield bytes([way, *range(40)])
    frames = Message(Kind.LAP, 1, 2, 3, 4, {"rows": 3}, memoryview(b"12345678"), 5).encode(_KEY)
    yield b"\0\2" + bytes([len(frames[0])]) + bytes(frames[0]) + bytes([len(frames[1])]) + bytes(frames[1])
    yield b"\1" + bytes(frames[0])[: wire._HEADER.size] + bytes(frames[1])


def _raw(choices: Choices) -> None:
    frames = [choices.piece() for _ in range(choices.below(6))]
    _check(wire.decode(frames, _KEY), frames)


def _sealed_bytes(choices: Choices) -> None:
    """Any header and body, with the right seal."""
    header = choices.take(wire._HEADER.size)
    body = choices.take()
    frames = [header + wire._seal(_KEY, header, body), body]
    _check(wire.decode(frames, _KEY), frames)


def _sealed_fields(choices: Choices) -> None:
    """A header and body that are nearly right, with the right seal."""
    numbers = [each for each in INTEGERS if 0 <= each < 1 << 64]
    kind, rank = choices.byte(), choices.pick((0, 1, 2, 1 << 19, 1 << 20, (1 << 20) + 1, (1 << 32) - 1))
    counters = [choices.pick(numbers) for _ in range(4)]
    header = wire._HEADER.pack(wire._MAGIC, kind, rank, *counters)
    value = Values(choices, _WORDS).value()
    body = json.dumps(value).encode() if choices.below(8) else b"[" * choices.pick((10, 1000, 100_000))
    frames: list[Any] = [header + wire._seal(_KEY, header, body), body]
    if choices.below(2):
        frames.append(choices.piece())
    _check(wire.decode(frames, _KEY), frames)


def _check(message: Message, frames: list[Any]) -> None:
    """What was read is what was written, and in range."""
    assert isinstance(message.kind, Kind)
    assert message.rank <= wire.MAX_RANK
    assert max(message.incarnation, message.round, message.offset, message.number) <= wire.MAX_COUNTER
    assert isinstance(message.body, dict)
    again = message.encode(_KEY)
    header = bytes(again[0])[: wire._HEADER.size]
    assert header == bytes(frames[0])[: wire._HEADER.size]
    assert wire.decode(again, _KEY).kind is message.kind
    assert len(again) == len(frames)
    # What it says can be said again.
    json.dumps(content_of(message).body())


def _typed(choices: Choices) -> None:
    described = Values(choices, _WORDS).edited(json.loads(json.dumps(choices.pick(_ARRAYS))), 4)
    buffer = choices.pick((bytes(32), choices.piece()))
    found = wire.unpack_typed(described, buffer)
    assert sum(each.nbytes for each in found) == len(buffer)
    # What was unpacked is data: it can be packed again by whoever stores it.
    wire.pack_typed(found)


def _arrays(choices: Choices) -> None:
    shapes = Values(choices).edited(json.loads(json.dumps(choices.pick(_SHAPES))), 4)
    buffer = choices.pick((bytes(32), None, choices.piece()))
    found = wire.unpack_arrays(shapes, buffer)
    assert sum(each.nbytes for each in found) == len(buffer or b"")


def _chunk(choices: Choices) -> None:
    length, itemsize = choices.pick((0, 1, 40, 1 << 20, 1 << 40)), choices.pick((1, 2, 4, 8))
    start, stop = wire.chunk_at(choices.pick([each for each in INTEGERS if each >= 0]), length, itemsize)
    assert 0 <= start <= stop <= length
    assert (stop - start) * itemsize <= wire.CHUNK_BYTES


def _payload(choices: Choices) -> None:
    """A chunk's payload, by any codec, into a vector."""
    codec = codec_named(choices.pick(("plain", "bfloat16", "int8")))
    vector = _LAYOUT.empty()[: choices.below(41)]
    size = codec.encoded_size(vector.size, 4)
    content = choices.take(size)
    payload = content if choices.below(4) == 0 else content.ljust(size, b"\1")
    with np.errstate(all="ignore"):
        codec.decode(payload, vector)
