"""Every layer over sequences against its reference: values, gradients, and that padding does not matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.compat.paddle.lowering.layer_calls import (
    arrays_of,
    called,
    differences,
    expected_rows,
    gradients,
    measured,
    rows_given,
)
from tests.compat.paddle.lowering.sequence_cases import CASES, SMOOTH

NAMED = {"ids": lambda case: case.name}


@pytest.mark.parametrize("case", CASES, **NAMED)
def test_rows_are_what_the_reference_says(case):
    arrays, masks = arrays_of(case)
    found, expected = rows_given(called(case, arrays, masks)), expected_rows(case)
    assert [row.shape for row in found] == [row.shape for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert_allclose(row, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", SMOOTH, **NAMED)
def test_gradients_are_differences_of_the_reference(case):
    weights = [np.random.default_rng(5).normal(size=row.shape) for row in expected_rows(case)]
    found = _gradients(case, weights)

    def total():
        return sum(float(np.sum(row * own)) for row, own in zip(expected_rows(case), weights, strict=True))

    for name, array in case.parameters.items():
        assert_allclose(found[name], differences(total, array), rtol=1e-3, atol=1e-4, err_msg=name)
    for at, given in enumerate(case.inputs):
        if given.kind == "ids" or (case.type, at) in NO_GRADIENT:
            continue
        for row, array in enumerate(given.rows):
            moved = found[f"in{at}"][row]
            moved = moved[: len(array)] if given.sequence else moved
            assert_allclose(moved, differences(total, array), rtol=1e-3, atol=1e-4, err_msg=f"input {at}, row {row}")


@pytest.mark.parametrize("case", SMOOTH, **NAMED)
def test_padding_does_not_matter_whatever_stands_there(case):
    weights = [np.random.default_rng(5).normal(size=row.shape) for row in expected_rows(case)]
    tight, loose = _gradients(case, weights), _gradients(case, weights, padding=3, junk=7.0)
    plain, masks = arrays_of(case, padding=3, junk=7.0)
    for row, wanted in zip(rows_given(called(case, plain, masks)), expected_rows(case), strict=True):
        assert_allclose(row, wanted, rtol=2e-5, atol=2e-6)
    for name, one in tight.items():
        other = loose[name]
        if name.startswith("in") and one.shape != other.shape:
            assert not np.any(other[:, one.shape[1] :]), f"{name}: what is not there has a gradient"
            other = other[:, : one.shape[1]]
        assert_allclose(other, one, rtol=1e-4, atol=1e-6, err_msg=name)


# Labels and weights, whose gradient no layer asks for.
NO_GRADIENT = {("crf", 2), ("rank-cost", 2), ("rank-cost", 3), ("expand", 1)}


def _gradients(case, weights, padding=0, junk=0.0):
    arrays, masks = arrays_of(case, padding, junk)
    fixed = {name: array for name, array in arrays.items() if array.dtype.kind == "i"}
    moving = {name: array for name, array in arrays.items() if name not in fixed}
    return gradients(lambda given: measured(called(case, {**fixed, **given}, masks), weights), moving)
