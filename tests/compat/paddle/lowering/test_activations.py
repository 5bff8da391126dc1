"""Every active type: values, gradients, and what happens far out."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from keraunos.compat.paddle.lowering.activations import activate, softmax
from keraunos.errors import ModelError
from tests.compat.paddle.lowering.batch_calls import differences, gradients


def soft(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


REFERENCES = {
    "": lambda x: x,
    "linear": lambda x: x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": soft,
    "relu": lambda x: np.maximum(x, 0),
    "brelu": lambda x: np.clip(x, 0, 24),
    "tanh": np.tanh,
    "stanh": lambda x: 1.7159 * np.tanh(2 * x / 3),
    "softrelu": lambda x: np.log(1 + np.exp(x)),
    "abs": np.abs,
    "square": np.square,
    "exponential": np.exp,
    "log": np.log,
}
POINTS = np.array([[-2.5, -0.7, 0.3], [1.9, 3.1, -1.2]])


@pytest.mark.parametrize("name", REFERENCES)
def test_values_and_gradients(name):
    points = np.abs(POINTS) if name == "log" else POINTS * (10 if name == "brelu" else 1)
    points = points.copy()
    weights = np.random.default_rng(0).normal(size=points.shape)
    assert_allclose(_given(name, points), REFERENCES[name](points), rtol=1e-5, atol=1e-6)
    own = keras.ops.convert_to_tensor(weights.astype(np.float32))
    found = _gradient(lambda x: keras.ops.sum(activate(name, x) * own), points.astype(np.float32))
    near = differences(lambda: float(np.sum(REFERENCES[name](points) * weights)), points)
    assert_allclose(found, near, rtol=1e-4, atol=1e-5)


def test_sequence_softmax_goes_over_the_steps_of_each_row():
    scores = np.array([[[1.0], [2.0], [50.0]], [[0.5], [0.0], [-1.0]]], np.float32)
    mask = np.array([[True, True, False], [True, True, True]])
    found = keras.ops.convert_to_numpy(
        activate("sequence_softmax", keras.ops.convert_to_tensor(scores), keras.ops.convert_to_tensor(mask))
    )
    assert_allclose(found[0, :, 0], [*soft(scores[0, :2, 0]), 0.0], rtol=1e-6)
    assert_allclose(found[1, :, 0], soft(scores[1, :, 0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "far", "value"),
    [("sigmoid", 50.0, 1 / (1 + np.exp(-13.0))), ("sigmoid", -80.0, np.exp(-40.0)), ("softrelu", 90.0, 40.0),
     ("brelu", 1e4, 24.0)],
)  # fmt: skip
def test_far_out_paddle_cuts_off(name, far, value):
    assert_allclose(_given(name, np.array([[far]])), [[value]], rtol=1e-6)


def test_a_class_without_hope_keeps_a_probability_and_learns():
    scores = np.array([[0.0, -500.0, 3e9]], np.float32)

    def cost(x):
        return -keras.ops.sum(keras.ops.log(softmax(x)[:, 1]))

    assert_allclose(float(cost(keras.ops.convert_to_tensor(scores))), 64.0, rtol=1e-6)
    assert_allclose(_gradient(cost, scores), [[0.0, -1.0, 1.0]], atol=1e-6)


def test_an_unknown_activation_is_refused_by_name():
    with pytest.raises(ModelError, match="Received: 'relo'. Did you mean 'relu'"):
        activate("relo", keras.ops.ones((1, 1)))
    with pytest.raises(ModelError, match="'sequence_softmax' goes over the steps of a sequence"):
        activate("sequence_softmax", keras.ops.ones((1, 1)))


def _gradient(function, x):
    return gradients(lambda arrays: (function(arrays["x"]),) * 2, {"x": x})[1]["x"]


def _given(name, points):
    return keras.ops.convert_to_numpy(activate(name, keras.ops.convert_to_tensor(points.astype(np.float32))))
