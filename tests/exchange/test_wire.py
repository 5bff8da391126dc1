"""The wire reads back what it wrote and refuses everything else without falling over."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.wire import Kind, Message, WireError, chunks, decode, pack_arrays, unpack_arrays

counters = st.integers(0, 1 << 62)
bodies = st.dictionaries(st.text(max_size=8), st.none() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=8))


@given(st.sampled_from(Kind), st.integers(0, 1 << 20), counters, counters, counters, bodies, st.binary(max_size=64))
def test_round_trip(kind, rank, incarnation, round_, offset, body, payload):
    message = Message(kind, rank, incarnation, round_, offset, body, memoryview(payload))
    read = decode([bytes(frame) for frame in message.encode()])
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
        decode(frames)


@given(st.data())
def test_a_damaged_message_is_refused_or_still_well_formed(data):
    frames = [bytes(frame) for frame in Message(Kind.PUSH, 1, 2, 3, 4, {"rows": 5}, np.arange(3.0)).encode()]
    at = data.draw(st.integers(0, len(frames[0]) + len(frames[1]) - 1))
    which, position = (0, at) if at < len(frames[0]) else (1, at - len(frames[0]))
    damaged = bytearray(frames[which])
    damaged[position] ^= data.draw(st.integers(1, 255))
    frames[which] = bytes(damaged)
    try:
        message = decode(frames)
    except WireError:
        return
    assert isinstance(message.kind, Kind)
    assert isinstance(message.body, dict)


@given(st.integers(0, 10_000_000), st.sampled_from([4, 8]))
def test_chunks_cover_a_vector_exactly_once(length, itemsize):
    pieces = chunks(length, itemsize)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == length
    assert all(before[1] == after[0] for before, after in pairwise(pieces))
    assert all((stop - start) * itemsize <= 1 << 20 for start, stop in pieces)


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
