"""Compiled functions that outlive a model: who shares them, and that nobody notices."""

import gc

import keras
import numpy as np
import pytest

from keraunos.batch import Batch
from keraunos.learners import keras_jax_programs
from keraunos.learners.keras_jax import KerasJaxLearner
from keraunos.learners.keras_jax_programs import _kept, programs_of

pytestmark = pytest.mark.skipif(keras.config.backend() != "jax", reason="functions are kept for JAX alone")


def network(*, width=8, rate=0.1, layers=(), seed=3):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            *layers,
            keras.layers.Dense(width, "relu"),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(3),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss, metrics=["accuracy"])
    return model


def batch(rows=6, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 4)).astype("float32")
    return Batch(inputs=x, targets=random.integers(0, 3, rows), weights=None, rows=rows)


def trained(model, steps=3):
    learner = KerasJaxLearner(model)
    learner.prepare(batch(), seed=5, rank=1)
    for step in range(steps):
        learner.step(batch(seed=step))
        learner.gradient(batch(seed=step))
    learner.evaluate(batch(seed=9))
    return learner, learner.read(), learner.take_metrics()


@pytest.fixture(autouse=True)
def nothing_kept():
    _kept.clear()
    yield
    _kept.clear()


def test_an_equal_model_gets_the_functions_that_another_left_and_computes_the_same():
    first, weights, metrics = trained(network())
    programs = first._programs
    del first
    gc.collect()
    second, again, metrics_again = trained(network())
    assert second._programs is programs
    assert np.array_equal(weights, again)
    for one, other in zip(metrics, metrics_again, strict=True):
        assert np.array_equal(one, other)


def test_other_weights_in_an_equal_model_stay_its_own():
    trained(network(seed=3))
    gc.collect()
    model = network(seed=4)
    shared, weights, _ = trained(model)
    _kept.clear()
    alone, expected, _ = trained(network(seed=4))
    assert shared._programs is not alone._programs
    assert np.array_equal(weights, expected)


def test_functions_that_are_in_use_are_not_given_away():
    first, _, _ = trained(network())
    second, _, _ = trained(network())
    assert first._programs is not second._programs


@pytest.mark.parametrize("other", [{"width": 9}, {"rate": 0.2}])
def test_another_model_gets_functions_of_its_own(other):
    programs = trained(network())[0]._programs
    gc.collect()
    assert trained(network(**other))[0]._programs is not programs


def test_what_a_layer_was_adapted_to_is_never_shared():
    results = []
    for scale in (1.0, 10.0):
        normalization = keras.layers.Normalization()
        normalization.adapt(np.arange(8, dtype="float32").reshape(2, 4) * scale)
        results.append(trained(network(layers=[normalization]))[1])
        gc.collect()
    assert not _kept
    assert not np.allclose(*results)


def test_few_are_kept(monkeypatch):
    monkeypatch.setattr(keras_jax_programs, "KEPT_PROGRAMS", 2)
    for width in range(4, 8):
        trained(network(width=width), steps=1)
    assert len(_kept) == 2


def test_a_custom_layer_is_not_described_by_its_configuration():
    class Own(keras.layers.Dense):
        pass

    model = network(layers=[Own(4)])
    learner = KerasJaxLearner(model)
    learner.prepare(batch(), seed=1, rank=0)
    assert programs_of(model, learner) is not programs_of(model, learner)
