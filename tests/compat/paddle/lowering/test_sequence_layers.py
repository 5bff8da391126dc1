"""Every layer over sequences against its reference: values, gradients, and that padding does not matter."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.compat.paddle.lowering.layer_calls import differences, evaluated, expected_rows, values
from tests.compat.paddle.lowering.sequence_cases import CASES

SMOOTH = [name for name, case in CASES.items() if case.smooth]
# One case of each type that takes sequences, in each direction.
PADDED = {
    (CASES[name].type, CASES[name].attributes.get("reversed")): name
    for name in reversed(SMOOTH)
    if any(given.sequence for given in CASES[name].inputs)
}.values()
# Labels and weights, whose gradient no layer asks for.
NO_GRADIENT = {("crf", 2), ("rank-cost", 2), ("rank-cost", 3), ("expand", 1)}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_what_the_reference_says(name):
    case = CASES[name]
    found, expected = _tight(name)[0] if case.smooth else values(case, padding=1), expected_rows(case)
    assert [row.shape for row in found] == [row.shape for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert_allclose(row, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_differences_of_the_reference(name):
    case, weights, found = CASES[name], _weights(CASES[name]), _tight(name)[1]

    def total():
        return sum(float(np.sum(row * own)) for row, own in zip(expected_rows(case), weights, strict=True))

    for parameter, array in case.parameters.items():
        assert_allclose(found[parameter], differences(total, array), rtol=1e-3, atol=1e-4, err_msg=parameter)
    for at, given in enumerate(case.inputs):
        if given.kind == "ids" or (case.type, at) in NO_GRADIENT:
            continue
        for row, array in enumerate(given.rows):
            moved = found[f"in{at}"][row]
            moved = moved[: len(array)] if given.sequence else moved
            assert_allclose(moved, differences(total, array), rtol=1e-3, atol=1e-4, err_msg=f"input {at}, row {row}")


@pytest.mark.parametrize("name", PADDED)
def test_padding_does_not_matter_whatever_stands_there(name):
    case = CASES[name]
    rows, loose = evaluated(case, _weights(case), padding=3, junk=7.0)
    for row, wanted in zip(rows, _tight(name)[0], strict=True):
        assert_allclose(row, wanted, rtol=1e-5, atol=1e-6)
    for array, one in _tight(name)[1].items():
        other = loose[array]
        if one.shape != other.shape:
            assert not np.any(other[:, one.shape[1] :]), f"{array}: what is not there has a gradient"
            other = other[:, : one.shape[1]]
        assert_allclose(other, one, rtol=1e-4, atol=1e-6, err_msg=array)


@functools.cache
def _tight(name):
    """Rows and gradients without more padding than there must be."""
    return evaluated(CASES[name], _weights(CASES[name]))


def _weights(case):
    random = np.random.default_rng(5)
    return [random.normal(size=row.shape) for row in expected_rows(case)]
