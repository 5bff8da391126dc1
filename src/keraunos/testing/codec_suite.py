"""Tests for a codec: chunks are independent, rounding errors are carried over, and received bytes are checked.

A test class inherits `CodecSuite` and creates the codec.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from keraunos.exchange.codecs.codec import Codec
from keraunos.exchange.codecs.feedback import Difference, ErrorFeedback
from keraunos.exchange.wire import WireError
from keraunos.parameters import Vector

LENGTHS = (0, 1, 7, 1000, 1023, 1024, 1025, 17 * 1024 + 5)
CHUNKS = (1, 16)


class CodecSuite:
    """Inherit it and define `codec`.

    Attributes:
        relative_error: how far a decoded value may be from the given one, as a share of the largest magnitude among
            the values that are encoded together; 0 for a lossless codec.
    """

    relative_error: float = 0.0

    def codec(self) -> Codec:
        """Returns a new codec."""
        raise NotImplementedError

    @pytest.mark.parametrize("length", LENGTHS)
    def test_values_are_decoded_within_the_error(self, length: int) -> None:
        codec = self.codec()
        for scale in (0.0, 1e-3, 1.0, 1e30):
            values = _random(length) * np.float32(scale)
            decoded = _decoded(codec, values)
            allowed = self.relative_error * float(np.abs(values).max(initial=0.0))
            # Magnitudes below the smallest normal number may become zero.
            assert np.all(np.abs(decoded - values) <= allowed * (1 + 1e-4) + 127 * np.finfo(np.float32).tiny)
            if codec.lossless:
                assert decoded.tobytes() == values.tobytes()

    @pytest.mark.parametrize("length", LENGTHS)
    def test_the_bytes_are_as_many_as_it_says(self, length: int) -> None:
        codec = self.codec()
        assert codec.encode(_random(length), codec.buffer(length)).nbytes == codec.encoded_size(length)

    def test_values_are_left_as_they_are(self) -> None:
        codec, values = self.codec(), _random(3000)
        before = values.copy()
        _decoded(codec, values)
        np.testing.assert_array_equal(values, before)

    @pytest.mark.parametrize("blocks", CHUNKS)
    def test_a_run_that_starts_at_a_block_has_the_same_bytes_alone(self, blocks: int) -> None:
        codec, values = self.codec(), _random(20 * 1024 + 3)
        start = blocks * codec.block
        whole = bytes(codec.encode(values, codec.buffer(values.size)))
        tail = values[start:].copy()
        assert bytes(codec.encode(tail, codec.buffer(tail.size))) == whole[codec.encoded_size(start) :]

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("place", [3, 2049])
    def test_a_value_that_is_not_finite_is_not_finite_when_decoded(self, bad: float, place: int) -> None:
        values = np.ones(2 * 1024 + 7, dtype=np.float32)
        values[place] = bad
        assert not np.isfinite(_decoded(self.codec(), values)[place])

    @pytest.mark.parametrize("length", LENGTHS)
    @pytest.mark.parametrize("wrong", [-3, -1, 1, 3])
    def test_a_payload_of_another_size_is_refused(self, length: int, wrong: int) -> None:
        codec = self.codec()
        size = codec.encoded_size(length) + wrong
        if size >= 0:
            with pytest.raises(WireError):
                codec.decode(bytes(size), np.empty(length, dtype=np.float32))

    def test_any_bytes_of_the_right_number_are_decoded_or_refused(self) -> None:
        codec, out = self.codec(), np.empty(3 * 1024 + 1, dtype=np.float32)
        noise = np.random.default_rng(0)
        for _ in range(50):
            try:
                codec.decode(noise.bytes(codec.encoded_size(out.size)), out)
            except WireError:
                continue

    @pytest.mark.parametrize("length", LENGTHS)
    @pytest.mark.parametrize("chunk", [1024, 50_000])
    def test_the_error_of_a_message_is_made_good_by_the_next(self, length: int, chunk: int) -> None:
        codec, feedback = self.codec(), ErrorFeedback(self.codec(), length)
        out, decoded = codec.buffer(length), np.empty(length, dtype=np.float32)
        given_sum, decoded_sum = np.zeros(length), np.zeros(length)
        for seed in range(8):
            values = _uneven(length, seed)
            for start, stop in _chunks(length, chunk):
                codec.decode(feedback.encode(values[start:stop], out, start), decoded[start:stop])
            given_sum += values
            decoded_sum += decoded
        residual = np.zeros(length) if codec.lossless else feedback.residual
        np.testing.assert_allclose(decoded_sum, given_sum - residual, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("length", LENGTHS)
    @pytest.mark.parametrize("chunk", [1024, 50_000])
    def test_sender_and_receiver_hold_the_same_bits(self, length: int, chunk: int) -> None:
        parameters = _uneven(length, 0)
        sender, receiver = Difference(self.codec(), parameters.copy()), Difference(self.codec(), parameters.copy())
        out = self.codec().buffer(length)
        for seed in range(1, 6):
            parameters += _uneven(length, seed)
            for start, stop in _chunks(length, chunk):
                receiver.decode(bytes(sender.encode(parameters[start:stop], out, start)), stop - start, start)
        assert sender.held.tobytes() == receiver.held.tobytes()

    def test_parameters_that_rest_are_reached(self) -> None:
        parameters = _random(5000)
        sender = Difference(self.codec(), np.zeros_like(parameters))
        receiver = Difference(self.codec(), np.zeros_like(parameters))
        out = self.codec().buffer(parameters.size)
        for _ in range(6):
            receiver.decode(bytes(sender.encode(parameters, out)), parameters.size)
        np.testing.assert_allclose(receiver.held, parameters, rtol=0, atol=1e-6)


def _decoded(codec: Codec, values: Vector) -> Vector:
    out = np.full_like(values, 7)
    codec.decode(bytes(codec.encode(values, codec.buffer(values.size))), out)
    return out


def _random(length: int) -> Vector:
    return np.random.default_rng(1).normal(size=length).astype(np.float32)


def _uneven(length: int, seed: int) -> Vector:
    """Returns values that differ by a factor of a million: small ones are lost if errors are not carried over."""
    random = np.random.default_rng(seed)
    magnitudes = 10.0 ** np.random.default_rng(99).uniform(-6, 0, size=length)
    values: Vector = (random.normal(size=length) * magnitudes).astype(np.float32)
    return values


def _chunks(length: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(length, start + size)) for start in range(0, length, size))
