"""The wire reads back what it wrote and refuses everything else without falling over."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.wire import Kind, Message, WireError, chunk_at, chunks, decode, pack_arrays, unpack_arrays

KEY = b"the job's key"
counters = st.integers(0, 1 << 62)
bodies = st.dictionaries(st.text(max_size=8), st.none() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=8))


@given(st.sampled_from(Kind), st.integers(0, 1 << 20), counters, counters, counters, bodies, st.binary(max_size=64))
def test_round_trip(kind, rank, incarnation, round_, offset, body, payload):
    message = Message(kind, rank, incarnation, round_, offset, body, memoryview(payload))
    read = decode([bytes(frame) for frame in message.encode(KEY)], KEY)
    assert (read.kind, read.rank, read.incarnation, read.round, read.offset) == (
        kind,
        rank,
        incarnation,
        round_,
        offset,
    )
    assert read.body == body
    assert bytes(read.payload) == payload


@given(st.lists(st.binary(max_size=80), max_size=5))
def test_garbage_is_refused_as_such(frames):
    with pytest.raises(WireError):
        decode(frames, KEY)


def frames_of(key=KEY, **body):
    return [bytes(frame) for frame in Message(Kind.PUSH, 1, 2, 3, 4, {"rows": 5, **body}, np.arange(3.0)).encode(key)]


@given(st.data())
def test_a_message_with_any_bit_of_header_or_body_changed_is_refused(data):
    frames = frames_of()
    which = data.draw(st.sampled_from([0, 1]))
    damaged = bytearray(frames[which])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(WireError):
        decode([bytes(damaged) if index == which else frame for index, frame in enumerate(frames)], KEY)


@given(st.data())
def test_a_message_cut_short_is_refused(data):
    frames = frames_of()
    which = data.draw(st.sampled_from([0, 1]))
    frames[which] = frames[which][: data.draw(st.integers(0, len(frames[which]) - 1))]
    with pytest.raises(WireError):
        decode(frames, KEY)


@given(st.binary(max_size=80))
def test_only_the_key_makes_a_seal(key):
    if key[:64] != KEY:
        with pytest.raises(WireError, match="not as it was sent"):
            decode(frames_of(key), KEY)
    assert decode(frames_of(key), key).body == {"rows": 5}


@pytest.mark.parametrize(
    "message",
    [
        Message(Kind.PUSH, (1 << 20) + 1),
        Message(Kind.PUSH, 0, (1 << 62) + 1),
        Message(Kind.PUSH, 0, 0, (1 << 64) - 1),
        Message(Kind.PUSH, 0, 0, 0, (1 << 62) + 1),
    ],
    ids=["rank", "incarnation", "round", "offset"],
)
def test_counters_out_of_range_are_refused_from_a_holder_of_the_key_too(message):
    with pytest.raises(WireError, match="out of range"):
        decode(message.encode(KEY), KEY)


@pytest.mark.parametrize("body", [[1], "text", 3], ids=["a list", "a text", "a number"])
def test_a_body_that_is_no_object_is_refused(body):
    with pytest.raises(WireError, match="JSON object"):
        decode(Message(Kind.PUSH, body=body).encode(KEY), KEY)


def test_a_body_may_be_nested_too_deeply_to_read():
    body = {"a": 0}
    frames = Message(Kind.PUSH, body=body).encode(KEY)
    deep = b"[" * 200_000
    with pytest.raises(WireError):
        decode([frames[0], deep], KEY)


@given(st.integers(0, 10_000_000), st.sampled_from([4, 8]))
def test_chunks_cover_a_vector_exactly_once(length, itemsize):
    pieces = chunks(length, itemsize)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == length
    assert all(before[1] == after[0] for before, after in pairwise(pieces))
    assert all((stop - start) * itemsize <= 1 << 20 for start, stop in pieces)


@given(st.integers(0, 3_000_000), st.sampled_from([4, 8]), st.integers(0, 4_000_000))
def test_only_where_a_chunk_starts_there_is_one(length, itemsize, offset):
    pieces = dict(chunks(length, itemsize))
    for start, stop in pieces.items():
        assert chunk_at(start, length, itemsize) == (start, stop)
    if offset not in pieces:
        with pytest.raises(WireError):
            chunk_at(offset, length, itemsize)


def test_arrays_of_any_shape_travel_together():
    arrays = [np.float64(3.5) * np.ones(()), np.arange(6.0).reshape(2, 3), np.empty((0, 4))]
    shapes, buffer = pack_arrays(arrays)
    read = unpack_arrays(shapes, memoryview(buffer.tobytes()))
    assert [each.shape for each in read] == [(), (2, 3), (0, 4)]
    for ours, theirs in zip(arrays, read, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shapes", [[[3]], [[-1]], "no", [["x"]], None, [[2, 2], [1]]])
def test_arrays_that_do_not_fit_their_shapes_are_refused(shapes):
    with pytest.raises(WireError):
        unpack_arrays(shapes, np.arange(4.0).tobytes())
