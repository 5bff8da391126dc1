"""Every layer of vectors and images, and every plain cost, against its reference: values, gradients, shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keraunos.compat.paddle.lowering.call import layer_type
from tests.compat.paddle.lowering import cost_cases, image_cases, mixed_cases, vector_cases
from tests.compat.paddle.lowering.batch_calls import called, computed, differences, symbolic_shapes

CASES = [*vector_cases.CASES, *mixed_cases.CASES, *image_cases.CASES, *cost_cases.CASES]
NAMED = {"ids": lambda case: case.name}


@pytest.mark.parametrize("case", CASES, **NAMED)
def test_values_and_gradients_are_those_of_the_reference(case):
    expected = case.expected()
    weights = np.random.default_rng(5).normal(size=expected.shape)
    mask = None if layer_type(case.type).is_cost else next((each for each in case.masks if each is not None), None)
    if mask is not None:
        weights *= mask[..., None]
    found, gradients = computed(case, weights)
    assert found.shape == expected.shape
    there = np.ones(expected.shape, bool) if mask is None else np.broadcast_to(mask[..., None], expected.shape)
    assert_allclose(found[there], expected[there], rtol=2e-5, atol=2e-6)
    if not case.smooth:
        return
    for name, gradient in gradients.items():
        near = differences(lambda: float(np.sum(case.expected() * weights)), case.array(name))
        assert_allclose(gradient, near, rtol=1e-3, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("case", CASES, **NAMED)
def test_keras_knows_the_shape_in_a_model(case):
    expected = case.expected()
    shape = symbolic_shapes(case)[0]
    assert shape[0] is None
    sides = shape[1:] if len(shape) < 3 or shape[1] is not None else shape[2:]
    assert sides == expected.shape[len(expected.shape) - len(sides) :]
    assert len(shape) == len(expected.shape)


def test_blocks_of_an_image_are_a_sequence_without_gaps():
    case = next(each for each in CASES if each.name == "blocks_as_steps")
    value, _ = called(case, case.arrays)
    assert np.asarray(value.mask).tolist() == [[True] * 6] * 2


@pytest.mark.parametrize("kind", ["ids", "bag"])
def test_what_chooses_gives_ids(kind):
    case = next(each for each in CASES if each.name == {"ids": "maxid", "bag": "maxid_beam"}[kind])
    assert called(case, case.arrays)[0].kind == kind


@pytest.mark.parametrize("name", ["cross_entropy", "soft_binary", "multi_binary_bags", "cross_entropy_of_sequences"])
def test_probabilities_of_nothing_and_of_all_cost_numbers(name):
    case = next(each for each in CASES if each.name == name)
    sure = (case.inputs[0].array > 0.5).astype(float)
    case = replace(case, inputs=[replace(case.inputs[0], array=sure), *case.inputs[1:]])
    found, gradients = computed(case, np.ones(len(sure)))
    assert np.isfinite(found).all()
    assert found.max() > 60
    assert np.isfinite(gradients["in0"]).all()
