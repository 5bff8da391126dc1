"""The digits that come with the package are those that scikit-learn has."""

import numpy as np
import pandas as pd
from sklearn import datasets

from keraunos.data.digits import load_digits


def test_the_digits_are_those_of_scikit_learn():
    digits, known = load_digits(), datasets.load_digits(as_frame=True)
    assert digits.data.shape == (1797, 64)
    assert digits.data.dtype == known.data.to_numpy().dtype
    np.testing.assert_array_equal(digits.images, known.images)
    assert digits.feature_names == known.feature_names
    pd.testing.assert_frame_equal(digits.frame, known.frame)


def test_the_arrays_are_the_callers_own():
    load_digits().data[:] = 0
    load_digits().images[:] = 0
    assert load_digits().data.max() == 16
