"""The rules against the formulas they stand for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.exchange import rules
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "b", "mean"), ((3, 2), (2,), (4,)), trainable=2)
sizes = st.lists(st.integers(1, 100), min_size=1, max_size=4)
values = hnp.arrays(np.float32, 200_000, elements=st.floats(-10, 10, width=32), fill=st.just(np.float32(0.5)))


def vectors(rows, length):
    random = np.random.default_rng(len(rows))
    return [random.normal(size=length).astype(np.float32) for _ in rows]


@given(sizes)
def test_the_mean_gradient_is_weighted_by_its_denominator_and_state_by_rows(rows):
    sent = [
        rules.Sent(vector * np.float32(count), (float(count),), count)
        for count, vector in zip(rows, vectors(rows, LAYOUT.size), strict=True)
    ]
    out = LAYOUT.empty()
    rules.mean_gradient(sent, LAYOUT, out)
    expected = np.average(vectors(rows, LAYOUT.size), axis=0, weights=rows)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@given(sizes)
def test_parts_with_their_own_denominators_add_up(rows):
    length = 2 * LAYOUT.trainable_size + LAYOUT.state_size
    given_ = vectors(rows, length)
    sent = [rules.Sent(vector, (None, 2.0 * count), count) for count, vector in zip(rows, given_, strict=True)]
    out = LAYOUT.empty()
    rules.mean_gradient(sent, LAYOUT, out)
    total = np.sum(given_, axis=0)
    t = LAYOUT.trainable_size
    np.testing.assert_allclose(out[:t], total[:t] + total[t : 2 * t] / (2 * sum(rows)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out[t:], total[2 * t :] / sum(rows), rtol=1e-4, atol=1e-5)


def test_a_round_whose_denominators_are_all_zero_moves_nothing():
    sent = [rules.Sent(np.zeros(LAYOUT.size, np.float32), (0.0,), 4)]
    out = LAYOUT.empty()
    rules.mean_gradient(sent, LAYOUT, out)
    np.testing.assert_array_equal(out, 0)


@given(values)
def test_sums_over_many_blocks_equal_one_sum(vector):
    parameters = np.ones_like(vector)
    rules.mean_update([rules.Sent(vector * 2, (2.0,), 2), rules.Sent(vector * 6, (6.0,), 6)], parameters)
    np.testing.assert_allclose(parameters, 1 - vector, rtol=1e-5, atol=1e-5)


def test_an_asynchronous_update_is_scaled():
    parameters = np.zeros(3, np.float32)
    rules.add_update(rules.Sent(np.full(3, 8, np.float32), (4.0,), 4), 0.5, parameters)
    np.testing.assert_allclose(parameters, -1)
