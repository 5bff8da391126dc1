"""Elephas's optimizers step as those of the Keras of their time did, and keep their state."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.elephas import optimizers
from keraunos.errors import JobError
from keraunos.learners.keras_optimizers import ServerOptimizer

GRADIENTS = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")


def sgd(g, state, t, *, lr=0.01, momentum=0.0, decay=0.0, nesterov=False):
    rate = lr / (1 + decay * t)
    state["v"] = momentum * state.get("v", 0) - rate * g
    return momentum * state["v"] - rate * g if nesterov else state["v"]


def rmsprop(g, state, t, *, lr=0.001, rho=0.9, epsilon=1e-6):
    state["a"] = rho * state.get("a", 0) + (1 - rho) * g**2
    return -lr * g / np.sqrt(state["a"] + epsilon)


def adagrad(g, state, t, *, lr=0.01, epsilon=1e-6):
    state["a"] = state.get("a", 0) + g**2
    return -lr * g / np.sqrt(state["a"] + epsilon)


def adadelta(g, state, t, *, lr=1.0, rho=0.95, epsilon=1e-6):
    state["a"] = rho * state.get("a", 0) + (1 - rho) * g**2
    step = g * np.sqrt(state.get("d", 0) + epsilon) / np.sqrt(state["a"] + epsilon)
    state["d"] = rho * state.get("d", 0) + (1 - rho) * step**2
    return -lr * step


def adam(g, state, t, *, lr=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
    state["m"] = beta_1 * state.get("m", 0) + (1 - beta_1) * g
    state["v"] = beta_2 * state.get("v", 0) + (1 - beta_2) * g**2
    rate = lr * np.sqrt(1 - beta_2 ** (t + 1)) / (1 - beta_1 ** (t + 1))
    return -rate * state["m"] / (np.sqrt(state["v"]) + epsilon)


@pytest.mark.parametrize(
    ("optimizer", "formula", "arguments"),
    [
        (optimizers.SGD, sgd, {}),
        (optimizers.SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
        (optimizers.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (optimizers.SGD, sgd, {"lr": 0.1, "decay": 0.5}),
        (optimizers.RMSprop, rmsprop, {"rho": 0.8}),
        (optimizers.Adagrad, adagrad, {}),
        (optimizers.Adadelta, adadelta, {}),
        (optimizers.Adam, adam, {"lr": 0.01}),
    ],
)
def test_steps_are_those_of_the_formula(optimizer, formula, arguments):
    server = ServerOptimizer(optimizers.rule_of(optimizer(**arguments)), [("w", (5,))], "float32")
    parameters = np.ones(5, np.float32)
    expected, state = np.ones(5), {}
    for t, gradient in enumerate(GRADIENTS):
        server.apply(gradient, parameters)
        expected = expected + formula(gradient.astype(float), state, t, **arguments)
        np.testing.assert_allclose(parameters, expected, rtol=2e-4, atol=2e-6)


@given(st.sampled_from(["SGD", "RMSprop", "Adagrad", "Adadelta", "Adam"]), st.floats(1e-4, 1.0))
def test_a_description_is_read_back(name, rate):
    made = getattr(optimizers, name)(lr=rate)
    config = optimizers.serialize(made)
    for again in (optimizers.deserialize(config), optimizers.get(config), optimizers.get(made)):
        assert again.get_config() == config
    nested = {"class_name": name, "config": {key: value for key, value in config.items() if key != "name"}}
    assert optimizers.deserialize(nested).get_config() == config
    assert optimizers.get(name.lower(), {"lr": rate}).get_config() == config


def test_a_keras_optimizer_is_taken_as_it_is():
    rule = optimizers.rule_of(keras.optimizers.Lion(0.5))
    assert rule.is_optimizer
    assert optimizers.rule_of(None) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: optimizers.get("adamm"), "`optimizer` must be one of .*Did you mean 'adam'"),
        (lambda: optimizers.SGD(lr="fast"), "`lr` of SGD must be a number of at least 0. Received: 'fast'"),
        (lambda: optimizers.Adam(amsgrad=True), "`argument` must be one of"),
        (lambda: optimizers.get(3), "`optimizer` must be one of"),
    ],
)
def test_what_is_none_is_refused(make, said):
    with pytest.raises(JobError, match=said):
        make()


@pytest.mark.parametrize(("clipping", "moved"), [({"clipnorm": 1.0}, [0.6, 0.8]), ({"clipvalue": 0.1}, [0.1, 0.1])])
def test_updates_are_clipped(clipping, moved):
    server = ServerOptimizer(optimizers.rule_of(optimizers.SGD(lr=1.0, **clipping)), [("w", (2,))], "float32")
    parameters = np.zeros(2, np.float32)
    server.apply(np.array([3, 4], np.float32), parameters)
    np.testing.assert_allclose(parameters, -np.array(moved), rtol=1e-5)
