from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.ml.heads import Head
from keraunos.ml.keras import heads
from keraunos.ml.keras.signature import signature_of
from tests.ml.models import mlp


def head_of(model):
    return heads.head_of(model, signature_of(model).outputs[0])


def test_heads_of_models():
    import keras

    assert head_of(mlp()) == Head(4, logits=False)
    assert head_of(mlp(units=1, activation="sigmoid", loss="binary_crossentropy")).classes == 2
    logits = mlp(activation=None, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert head_of(logits) == Head(4, logits=True)
    assert Head.from_json(head_of(logits).to_json()) == head_of(logits)


def test_probabilities_pass_as_they_are():
    outputs = np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32)
    raw, probability = Head(2, logits=False).scores(outputs)
    np.testing.assert_array_equal(raw, outputs)
    np.testing.assert_array_equal(probability, outputs)


def test_one_sigmoid_unit_is_two_classes():
    raw, probability = Head(1, logits=False).scores(np.array([[0.25], [1.0]], dtype=np.float32))
    np.testing.assert_array_equal(probability, [[0.75, 0.25], [0.0, 1.0]])
    np.testing.assert_array_equal(raw, probability)


def test_one_logit_is_two_classes():
    raw, probability = Head(1, logits=True).scores(np.array([[2.0], [-1000.0]], dtype=np.float32))
    np.testing.assert_array_equal(raw, [[-2.0, 2.0], [1000.0, -1000.0]])
    expected = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(probability, [[1 - expected, expected], [1.0, 0.0]])


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6),
        elements=st.floats(-80, 80, width=32),
    )
)
def test_logits_become_probabilities_in_the_same_order(outputs):
    raw, probability = Head(outputs.shape[1], logits=True).scores(outputs)
    np.testing.assert_array_equal(raw, outputs)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    highest = np.take_along_axis(probability, outputs.argmax(axis=1)[:, None], axis=1)[:, 0]
    assert highest == pytest.approx(probability.max(axis=1))
