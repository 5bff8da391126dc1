"""The model of an estimator, compiled with names of the program's Keras."""

import keras
import numpy as np
import pytest

from keraunos.compat.elephas.ml import network
from keraunos.compat.run_unchanged import era
from keraunos.errors import JobError


@pytest.mark.parametrize(("day", "rate", "loss"), [("", 0.001, 4.0), ("1", 0.01, 1.0)])
def test_names_mean_what_they_meant_in_the_programs_keras(day, rate, loss, monkeypatch):
    monkeypatch.setitem(era._told, "keras", day)
    made = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model = network.compiled(made, "adagrad", "hinge", ["acc"], {})
    assert float(np.asarray(model.optimizer.learning_rate)) == pytest.approx(rate)
    # Labels 0 are taken as they are in Keras 1, for -1 today.
    assert model.evaluate(np.array([[3.0]]), np.array([0]), verbose=0)[0] == pytest.approx(loss)


@pytest.mark.parametrize("day", ["", "0", "1", "2"])
@pytest.mark.parametrize(("metrics", "expected"), [(None, 0.0), (["acc"], [0.0, 1.0])])
def test_a_model_is_compiled_on_any_keras(day, metrics, expected, monkeypatch):
    monkeypatch.setitem(era._told, "keras", day)
    made = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model = network.compiled(made, "sgd", "mse", metrics, {})
    assert model.evaluate(np.array([[1.0]]), np.array([[1.0]]), verbose=0) == pytest.approx(expected)


def test_metrics_that_keras_0_had_not_are_refused(monkeypatch):
    monkeypatch.setitem(era._told, "keras", "0")
    made = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    with pytest.raises(JobError, match=r"`metrics` must be \['acc'\] in a program for Keras 0.*Received: \['mae'\]"):
        network.compiled(made, "sgd", "mse", ["mae"], {})
