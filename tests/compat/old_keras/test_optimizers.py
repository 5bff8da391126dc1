"""Optimizers of Keras 0, 1 and 2 as numbers: steps, rates that are set, and one optimizer for several networks."""

import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import undecided
from keraunos.errors import JobError

ROW, LABEL = np.array([[1.0, 2.0]], "float32"), np.array([[1.0]], "float32")
DAYS = pytest.mark.parametrize("package", [keras0, keras1, keras2])


def _model(package, optimizer, width=2):
    layer = package.layers.Dense(width, 1) if package is keras0 else package.layers.Dense(1, input_dim=width)
    model = package.models.Sequential([layer])
    model.compile(optimizer, "mse")
    model.set_weights([np.zeros((width, 1)), np.zeros(1)])
    return model


def _weights(model):
    return np.concatenate([np.ravel(each) for each in model.get_weights()])


def _gradient(weights):
    error = 2 * (ROW[0] @ weights[:2] + weights[2] - LABEL[0, 0])
    return error * np.array([1.0, 2.0, 1.0])


EPSILON = 0.25
STEPS = {
    (keras0, "RMSprop"): lambda gradient, mean: gradient / np.sqrt(mean + EPSILON),
    (keras0, "Adagrad"): lambda gradient, total: gradient / np.sqrt(total + EPSILON),
    (keras1, "RMSprop"): lambda gradient, mean: gradient / (np.sqrt(mean) + 1e-4),
    (keras1, "Adagrad"): lambda gradient, total: gradient / (np.sqrt(total) + 1e-4),
}


@pytest.mark.parametrize(("package", "name"), STEPS)
def test_epsilon_stood_below_the_root_in_keras_0(package, name):
    epsilon = EPSILON if package is keras0 else 1e-4
    model = _model(package, getattr(package.optimizers, name)(lr=0.1, epsilon=epsilon))
    weights, squares = np.zeros(3), np.zeros(3)
    for _ in range(3):
        model.train_on_batch(ROW, LABEL)
        gradient = _gradient(weights)
        squares = 0.9 * squares + 0.1 * gradient**2 if name == "RMSprop" else squares + gradient**2
        weights = weights - 0.1 * STEPS[package, name](gradient, squares)
    np.testing.assert_allclose(_weights(model), weights, rtol=1e-4)


@DAYS
def test_the_rate_under_a_decay_is_read_and_set(package):
    optimizer = package.optimizers.SGD(lr=0.1, decay=0.5)
    model, backend, weights = _model(package, optimizer), package.backend, np.zeros(3)
    for step, rate in enumerate((0.1, 0.2)):
        backend.set_value(model.optimizer.lr, rate)
        assert backend.get_value(model.optimizer.lr) == pytest.approx(rate)
        model.train_on_batch(ROW, LABEL)
        weights = weights - rate / (1 + 0.5 * step) * _gradient(weights)
    np.testing.assert_allclose(_weights(model), weights, rtol=1e-5)
    schedule = package.callbacks.LearningRateScheduler(lambda epoch: 0.01)
    named = {"epochs" if package is keras2 else "nb_epoch": 1}
    model.fit(ROW, LABEL, verbose=0, callbacks=[schedule], **named)
    weights = weights - 0.01 / (1 + 0.5 * 2) * _gradient(weights)
    np.testing.assert_allclose(_weights(model), weights, rtol=1e-5)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(model.optimizer))
    again.iterations.assign(2)
    assert float(again.learning_rate) == pytest.approx(0.005)


@DAYS
def test_a_rate_that_is_assigned_counts_until_the_training(package, monkeypatch, caplog):
    monkeypatch.setattr(undecided, "_said", set())
    model = _model(package, package.optimizers.SGD(lr=0.1))
    model.optimizer.lr = 0.0
    model.train_on_batch(ROW, LABEL)
    assert not _weights(model).any()
    assert not caplog.records
    model.optimizer.lr = 0.1
    assert model.optimizer.lr == 0.1
    model.train_on_batch(ROW, LABEL)
    assert not _weights(model).any()
    assert "had no effect in Keras 0 to 2" in caplog.text
    model.compile(model.optimizer, "mse")
    model.train_on_batch(ROW, LABEL)
    np.testing.assert_allclose(_weights(model), -0.1 * _gradient(np.zeros(3)), rtol=1e-5)


@DAYS
def test_both_ways_of_clipping_come_one_after_the_other(package):
    model = _model(package, package.optimizers.SGD(lr=1.0, clipnorm=2.0, clipvalue=1.0))
    model.train_on_batch(ROW, LABEL)
    gradient = _gradient(np.zeros(3))
    expected = np.clip(gradient * 2.0 / np.linalg.norm(gradient), -1, 1)
    np.testing.assert_allclose(_weights(model), -expected, rtol=1e-5)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(model.optimizer))
    assert (again.global_clipnorm, again.clipvalue) == (2.0, 1.0)


@DAYS
def test_one_optimizer_is_for_several_networks(package):
    optimizer = package.optimizers.Adam(lr=0.1, epsilon=1e-8)
    models = [_model(package, optimizer), _model(package, optimizer)]
    weights, first, second = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3))
    for step in range(1, 5):
        at = step % 2  # their steps count together, their moments do not
        models[at].train_on_batch(ROW, LABEL)
        gradient = _gradient(weights[at])
        first[at], second[at] = 0.9 * first[at] + 0.1 * gradient, 0.999 * second[at] + 0.001 * gradient**2
        rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        weights[at] -= rate * first[at] / (np.sqrt(second[at]) + 1e-8)
    for model, expected in zip(models, weights, strict=True):
        np.testing.assert_allclose(_weights(model), expected, rtol=1e-4)
    package.backend.set_value(optimizer.lr, 0.0)
    for model in models:
        before = _weights(model)
        model.train_on_batch(ROW, LABEL)
        np.testing.assert_array_equal(_weights(model), before)


def test_layers_are_frozen_trained_and_freed_with_one_optimizer():
    optimizer = keras1.optimizers.Adam(lr=0.1)
    model = keras1.models.Sequential([keras1.layers.Dense(2, input_dim=2), keras1.layers.Dense(1)])
    for trainable in (False, True):
        model.layers[0].trainable = trainable
        model.compile(optimizer, "mse")
        before = model.get_weights()[0]
        model.fit(ROW, LABEL, nb_epoch=1, verbose=0)
        assert np.allclose(before, model.get_weights()[0]) != trainable


@DAYS
def test_configurations_of_that_day_make_optimizers(package):
    module = package.optimizers
    for made in (
        module.SGD.from_config({"lr": 0.5, "momentum": 0.9, "decay": 0.0, "nesterov": True}),
        module.get({"class_name": "SGD", "config": {"lr": 0.5, "momentum": 0.9, "nesterov": True}}),
        module.SGD.from_config(module.SGD(lr=0.5, momentum=0.9, nesterov=True).get_config()),
    ):
        assert (float(made.learning_rate), made.momentum, made.nesterov) == (0.5, 0.9, True)
    with pytest.raises(JobError, match="must be an optimizer"):
        module.get({"class_name": "Unheard", "config": {}})


@pytest.mark.parametrize("package", [keras0, keras1])
def test_a_rate_has_the_methods_of_theano(package):
    model = _model(package, package.optimizers.SGD(lr=0.1))
    model.optimizer.lr.set_value(0.5)
    assert float(model.optimizer.lr.get_value()) == 0.5 == float(model.optimizer.learning_rate)
