"""Errors of one message are made good by the next, and both sides agree on what was received."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.exchange.codecs.feedback import Difference, ErrorFeedback
from keraunos.exchange.codecs.registry import CODECS, codec_named
from keraunos.exchange.wire import WireError

LOSSY = [name for name, codec in CODECS.items() if not codec.lossless]
LENGTHS = st.sampled_from([0, 1, 1000, 1024, 16384, 16385, 40000])


def rounds(seed, count, length):
    """Vectors whose values differ in magnitude by a million, so that small ones are lost without feedback."""
    random = np.random.default_rng(seed)
    magnitudes = 10.0 ** random.uniform(-6, 0, size=length)
    return [(random.normal(size=length) * magnitudes).astype(np.float32) for _ in range(count)]


def in_chunks(length, step):
    return [(start, min(length, start + step)) for start in range(0, length, step)]


@pytest.mark.parametrize("name", LOSSY)
@given(seed=st.integers(0, 1000), length=LENGTHS, step=st.sampled_from([1000, 1024, 50000]))
@settings(max_examples=20)
def test_what_was_decoded_is_what_was_given_less_the_last_residual(name, seed, length, step):
    codec, feedback = codec_named(name), ErrorFeedback(codec_named(name), length)
    out, decoded = codec.buffer(length), np.empty(length, dtype=np.float32)
    given_sum, decoded_sum = np.zeros(length), np.zeros(length)
    for values in rounds(seed, 8, length):
        for start, stop in in_chunks(length, step):
            codec.decode(feedback.encode(values[start:stop], out, start), decoded[start:stop])
        given_sum += values
        decoded_sum += decoded
    np.testing.assert_allclose(decoded_sum, given_sum - feedback.residual, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", LOSSY)
def test_a_small_value_beside_a_large_one_arrives_in_time(name):
    codec, feedback = codec_named(name), ErrorFeedback(codec_named(name), 2)
    out, decoded, total = codec.buffer(2), np.empty(2, dtype=np.float32), np.zeros(2)
    for _ in range(1000):
        codec.decode(feedback.encode(np.array([1.0, 1e-3], dtype=np.float32), out), decoded)
        total += decoded
    np.testing.assert_allclose(total, [1000, 1], atol=0.01)


@pytest.mark.parametrize("name", LOSSY)
def test_a_divergence_is_not_hidden_by_the_residual(name):
    codec, feedback = codec_named(name), ErrorFeedback(codec_named(name), 3)
    decoded = np.empty(3, dtype=np.float32)
    codec.decode(feedback.encode(np.array([1, np.inf, 1], dtype=np.float32), codec.buffer(3)), decoded)
    assert not np.isfinite(decoded).all()


@pytest.mark.parametrize("name", CODECS)
@given(seed=st.integers(0, 1000), length=LENGTHS, step=st.sampled_from([1000, 1024, 50000]))
@settings(max_examples=20)
def test_both_sides_hold_the_same_to_the_bit(name, seed, length, step):
    codec = codec_named(name)
    first, *later = rounds(seed, 6, length)
    sender, receiver = Difference(codec, first.copy()), Difference(codec_named(name), first.copy())
    out, parameters = codec.buffer(length), first.copy()
    for moved in later:
        parameters += moved
        for start, stop in in_chunks(length, step):
            receiver.decode(bytes(sender.encode(parameters[start:stop], out, start)), stop - start, start)
        assert sender.held.tobytes() == receiver.held.tobytes()
    last_step = float(np.abs(np.concatenate([*later, [0]])).max())
    error = np.abs(receiver.held - parameters)
    # The last difference holds the last step and the error before it; nothing older.
    assert np.all(error <= 2.5 * last_step / 127)


@pytest.mark.parametrize("name", LOSSY)
def test_parameters_that_rest_are_reached(name):
    codec = codec_named(name)
    parameters = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    sender, receiver = Difference(codec, np.zeros_like(parameters)), Difference(codec, np.zeros_like(parameters))
    out = codec.buffer(parameters.size)
    for _ in range(6):
        held = receiver.decode(sender.encode(parameters, out), parameters.size)
    np.testing.assert_allclose(held, parameters, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize(("extra", "start"), [(1, 0), (-1, 0), (0, 2), (0, -1)])
def test_a_malformed_difference_leaves_everything_as_it_was(name, extra, start):
    codec = codec_named(name)
    receiver = Difference(codec, np.arange(1030, dtype=np.float32))
    with pytest.raises(WireError):
        receiver.decode(bytes(codec.encoded_size(1030) + extra), 1030, start)
    assert receiver.held.tolist() == list(range(1030))
