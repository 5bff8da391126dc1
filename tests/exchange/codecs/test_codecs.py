"""What every codec promises: bounds on its error, and no trust in what comes from the wire."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.errors import PlanError
from keraunos.exchange.codecs.int8 import BLOCK
from keraunos.exchange.codecs.registry import CODECS, codec_named
from keraunos.exchange.wire import CHUNK_BYTES, WireError

LENGTHS = st.one_of(st.integers(0, 40), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 17 * BLOCK + 5]))
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
MODERATE = st.floats(-(2.0**100), 2.0**100, width=32)


def vectors(elements=FINITE):
    """Vectors of a few drawn values among random ones: blocks are long, and drawing each value would be slow."""

    @st.composite
    def draw_vector(draw):
        length = draw(LENGTHS)
        scale = draw(st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e30]))
        values = np.random.default_rng(draw(st.integers(0, 99))).normal(size=length) * scale
        values = values.astype(np.float32)
        drawn = draw(hnp.arrays(np.float32, min(length, 8), elements=elements))
        places = np.linspace(0, length - 1, num=drawn.size).astype(int) if length else []
        values[places] = drawn
        return values

    return draw_vector()


def there_and_back(codec, values):
    out = np.full_like(values, 7)
    codec.decode(bytes(codec.encode(values, codec.buffer(values.size, values.itemsize))), out)
    return out


@given(vectors(st.floats(width=32)), st.sampled_from(["float32", "float64", "int64"]))
def test_plain_values_come_back_to_the_bit_and_are_not_copied_on_the_way(values, dtype):
    codec = codec_named("plain")
    values = np.frombuffer(values.astype(np.float64).tobytes(), dtype=dtype)
    sent = codec.encode(values, codec.buffer(values.size, values.itemsize))
    assert sent.nbytes == values.nbytes == codec.encoded_size(values.size, values.itemsize)
    assert values.size == 0 or np.shares_memory(sent, values)
    assert there_and_back(codec, values).tobytes() == values.tobytes()


@given(vectors(MODERATE))
def test_bfloat16_is_the_nearest_with_eight_bits(values):
    back = there_and_back(codec_named("bfloat16"), values)
    normal = np.abs(values) >= np.finfo(np.float32).tiny
    assert np.all(np.abs(back - values)[normal] <= np.abs(values)[normal] * 2.0**-8)
    assert np.all(back.view(np.uint32) & 0xFFFF == 0)


def test_bfloat16_ties_go_to_even():
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-8), 1 + 2**-8 + 2**-20], dtype=np.float32)
    expected = [1, 1 + 2 * 2**-7, -1, 1 + 2**-7]
    assert there_and_back(codec_named("bfloat16"), values).tolist() == expected


@given(vectors())
def test_int8_is_within_half_a_level_of_its_block(values):
    back = there_and_back(codec_named("int8"), values).astype(np.float64)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK].astype(np.float64)
        half_a_level = np.abs(block).max() / 127 / 2
        # A block too small for a scale with all of its bits is sent as zeros.
        allowed = max(half_a_level * (1 + 1e-4), 127 * float(np.finfo(np.float32).tiny))
        assert np.all(np.abs(back[start : start + BLOCK] - block) <= allowed)


def test_int8_keeps_what_its_levels_hold():
    values = np.arange(-127, 128, dtype=np.float32) * np.float32(0.25)
    assert there_and_back(codec_named("int8"), values).tolist() == values.tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [3, 2 * BLOCK + 1])
def test_a_value_that_is_not_finite_is_seen_at_the_other_end(bad, place):
    values = np.ones(2 * BLOCK + 7, dtype=np.float32)
    values[place] = bad
    back = there_and_back(codec_named("int8"), values)
    in_block = np.arange(values.size) // BLOCK == place // BLOCK
    assert np.isnan(back[in_block]).all()
    assert np.allclose(back[~in_block], 1)
    assert not np.isfinite(there_and_back(codec_named("bfloat16"), values)[place])


@pytest.mark.parametrize("name", ["bfloat16", "int8"])
def test_a_run_that_starts_at_a_block_has_the_same_bytes_alone(name):
    codec = codec_named(name)
    values = np.random.default_rng(1).normal(size=20 * BLOCK + 3).astype(np.float32)
    whole = codec.encode(values, codec.buffer(values.size))
    cut = 17 * codec.block
    tail = values[cut:]
    assert bytes(codec.encode(tail, codec.buffer(tail.size))) == bytes(whole[codec.encoded_size(cut) :])


@pytest.mark.parametrize("name", CODECS)
@given(length=LENGTHS, wrong=st.integers(-3, 3).filter(bool))
@settings(max_examples=25)
def test_a_payload_of_another_size_is_no_message(name, length, wrong):
    codec = codec_named(name)
    size = max(0, codec.encoded_size(length) + wrong)
    if size != codec.encoded_size(length):
        with pytest.raises(WireError, match=f"not {size}"):
            codec.decode(bytes(size), np.empty(length, dtype=np.float32))


@pytest.mark.parametrize("name", CODECS)
def test_bytes_of_the_right_number_decode_to_something(name):
    codec = codec_named(name)
    out = np.empty(3 * BLOCK + 1, dtype=np.float32)
    noise = np.random.default_rng(0)
    for _ in range(50):
        before = out.copy()
        codec.decode(noise.bytes(codec.encoded_size(out.size)), out)
        assert not np.array_equal(before, out, equal_nan=True)


@pytest.mark.parametrize(("name", "limit"), [("bfloat16", 0.5), ("int8", 0.26)])
def test_a_chunk_shrinks(name, limit):
    length = CHUNK_BYTES // 4
    assert codec_named(name).encoded_size(length) <= limit * CHUNK_BYTES


@pytest.mark.parametrize("name", ["bfloat16", "int8"])
def test_values_of_another_type_are_refused(name):
    codec = codec_named(name)
    with pytest.raises(TypeError, match="takes float32 values. Received: float64"):
        codec.encode(np.ones(3), codec.buffer(3))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(PlanError, match="'plain', 'bfloat16', 'int8'. Received: 'int9'. Did you mean 'int8'"):
        codec_named("int9")
