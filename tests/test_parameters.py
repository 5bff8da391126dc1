"""Whether a vector is finite, in one pass and exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.parameters import all_finite

VALUES = st.floats(width=32) | st.sampled_from([0.0, 3e38, -3e38, 1e30, 1e-40])


@given(values=st.lists(VALUES, max_size=20), factor=st.sampled_from([1.0, 32.0, 1e6]), dtype=st.sampled_from("fd"))
def test_it_is_what_looking_at_each_element_says(values, factor, dtype):
    vector = np.array(values, dtype=dtype)
    with np.errstate(all="ignore"):
        expected = bool(np.isfinite(vector * vector.dtype.type(factor)).all())
    assert all_finite(vector, factor) == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 70_000, 199_999])
def test_one_bad_element_is_found_wherever_it_is(bad, at):
    vector = np.full(200_000, 1e25, np.float32)
    assert all_finite(vector)
    vector[at] = bad
    assert not all_finite(vector)
