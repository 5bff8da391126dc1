"""Matrices and vectors of spark.mllib."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.compat.elephas.mllib import from_matrix, from_vector, to_matrix, to_vector
from keraunos.errors import DataError

NUMBERS = st.floats(-1e6, 1e6)


@given(hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=NUMBERS))
def test_a_matrix_has_the_arrays_rows_and_columns(array):
    matrix = to_matrix(array)
    assert (matrix.numRows, matrix.numCols) == array.shape
    np.testing.assert_array_equal(from_matrix(matrix), array)
    assert matrix[array.shape[0] - 1, 0] == array[-1, 0]


@given(hnp.arrays(float, st.integers(1, 6), elements=NUMBERS))
def test_a_vector_has_the_arrays_numbers(array):
    np.testing.assert_array_equal(from_vector(to_vector(array)), array)


def test_other_shapes_are_refused():
    with pytest.raises(DataError, match=r"two dimensions. Received: shape \(3,\)"):
        to_matrix(np.ones(3))
    with pytest.raises(DataError, match=r"one dimension. Received: shape \(1, 3\)"):
        to_vector(np.ones((1, 3)))
