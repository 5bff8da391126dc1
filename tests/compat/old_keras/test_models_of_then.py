"""Models as they were: copies and own classes have the day's methods, `compile` settles what is trained."""

import copy
import json
import pickle

import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import undecided
from keraunos.compat.old_keras.compiled import as_compiled
from keraunos.compat.tensorflow2 import keras as tf_keras
from keraunos.errors import JobError
from keraunos.learners.keras_archive import live_source

X = np.random.default_rng(5).normal(size=(8, 3)).astype("float32")
Y = np.array([[0.0], [1.0]] * 4, "float32")


def _sequential(package=keras1):
    dense = package.layers.Dense
    return package.models.Sequential([dense(4, input_dim=3), dense(1, activation="sigmoid")])


def _functional(package=keras1):
    entry = package.layers.Input(shape=(3,))
    return package.models.Model(entry, package.layers.Dense(1)(entry))


COPIES = {
    "Sequential.from_config": lambda: keras1.models.Sequential.from_config(_sequential().get_config()),
    "Model.from_config": lambda: keras1.models.Model.from_config(_functional().get_config()),
    "deepcopy": lambda: copy.deepcopy(_sequential()),
    "pickle": lambda: pickle.loads(pickle.dumps(_functional())),
    "a model within another": lambda: keras1.models.Sequential.from_config(
        keras1.models.Sequential([_sequential()]).get_config()
    ).layers[0],
}


@pytest.mark.parametrize("what", COPIES)
def test_a_copy_of_a_model_has_the_methods_of_its_day(what):
    model = COPIES[what]()
    model.compile("adagrad", "mse", metrics=["accuracy"])
    assert float(model.optimizer.lr) == pytest.approx(0.01)
    history = model.fit(X, Y, verbose=0)
    assert (len(history.epoch), sorted(history.history)) == (10, ["acc", "loss"])
    assert len(model.fit(X, Y, nb_epoch=1, verbose=0).epoch) == 1


def test_a_copy_begins_with_the_weights_of_the_original_and_goes_its_way():
    model = _sequential()
    model.compile("sgd", "mse")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        before = model.get_weights()
        np.testing.assert_array_equal(other.get_weights()[0], before[0])
        keras1.backend.set_value(other.optimizer.lr, 0.5)
        other.fit(X, Y, nb_epoch=1, verbose=0)
        assert not np.allclose(other.get_weights()[0], before[0])
        np.testing.assert_array_equal(model.get_weights()[0], before[0])


@pytest.mark.parametrize(("package", "key", "rate"), [(keras2, "acc", 0.01), (tf_keras, "accuracy", 0.001)])
def test_a_class_of_ones_own_has_the_methods_of_its_day(package, key, rate):
    class Own(package.models.Model):
        def __init__(self):
            super().__init__()
            self.dense = package.layers.Dense(1, activation="sigmoid")

        def call(self, x):
            return self.dense(x)

        def evaluate(self, *given, **named):
            return "mine"

    class Chain(package.models.Sequential):
        pass

    model = Own()
    model.compile("adagrad", "binary_crossentropy", metrics=["accuracy"])
    assert float(model.optimizer.learning_rate) == pytest.approx(rate)
    assert sorted(model.fit(X, Y, epochs=1, verbose=0).history) == sorted([key, "loss"])
    assert model.evaluate() == "mine"
    assert isinstance(model, package.models.Model)
    chain = Chain()
    chain.add(package.layers.Dense(2, input_dim=3))
    chain.compile("adadelta", "mse")
    assert float(chain.optimizer.learning_rate) == pytest.approx(0.001 if package is tf_keras else 1.0)


def test_a_class_of_ones_own_may_name_inputs_and_outputs():
    class Own(keras2.models.Model):
        pass

    entry = keras2.layers.Input((3,))
    model = Own(inputs=entry, outputs=keras2.layers.Dense(1)(entry))
    model.compile("adagrad", "mse")
    assert float(model.optimizer.learning_rate) == pytest.approx(0.01)
    assert model.predict(X).shape == (8, 1)


def _adversaries(package):
    """A discriminator, and a model of a generator and it that was compiled while it was frozen."""
    discriminator, generator = _sequential(package), package.models.Sequential([package.layers.Dense(3, input_dim=2)])
    discriminator.compile(package.optimizers.SGD(lr=0.5), "binary_crossentropy")
    discriminator.trainable = False
    both = package.models.Sequential([generator, discriminator])
    both.compile(package.optimizers.SGD(lr=0.5), "binary_crossentropy")
    return discriminator, generator, both


def _moved(model, train):
    before = model.get_weights()
    train()
    return max(np.abs(a - b).max() for a, b in zip(before, model.get_weights(), strict=True)) > 0


@pytest.mark.parametrize("package", [keras1, keras2, tf_keras], ids=lambda package: package.__name__)
@pytest.mark.parametrize("call", ["train_on_batch", "fit"])
@pytest.mark.filterwarnings("ignore:The model does not have any trainable weights")
def test_what_is_trained_is_settled_by_compile(package, call):
    epochs = {} if call == "train_on_batch" else {"epochs" if package is not keras1 else "nb_epoch": 1, "verbose": 0}
    discriminator, generator, both = _adversaries(package)
    z = np.ones((8, 2), "float32")
    assert _moved(discriminator, lambda: getattr(discriminator, call)(X, Y, **epochs))
    assert discriminator.trainable is False
    for flag in (False, True):
        discriminator.trainable = flag
        assert _moved(generator, lambda: getattr(both, call)(z, Y, **epochs))
        assert not _moved(discriminator, lambda: getattr(both, call)(z, Y, **epochs))
        assert discriminator.trainable is flag
    discriminator.trainable = False
    discriminator.compile("sgd", "binary_crossentropy")
    assert not _moved(discriminator, lambda: discriminator.train_on_batch(X, Y))


def test_one_optimizer_for_several_models_is_one_for_each():
    shared = keras2.optimizers.Adam(0.25, 0.5)
    models = [_sequential(keras2) for _ in range(2)]
    for model in (*models, models[0]):
        model.compile(loss="binary_crossentropy", optimizer=shared)
        assert _moved(model, lambda model=model: model.train_on_batch(X, Y))
        assert (float(model.optimizer.lr), model.optimizer.beta_1) == (0.25, 0.5)


def test_workers_train_what_compile_settled():
    discriminator, _generator, both = _adversaries(keras1)
    with as_compiled(discriminator):
        assert len(discriminator.trainable_variables) == 4
        assert live_source(discriminator, {}).archive
    assert not discriminator.trainable_variables
    discriminator.trainable = True
    with as_compiled(both):
        assert len(both.trainable_variables) == 2
    assert len(both.trainable_variables) == 6


def test_a_frozen_normalization_is_told_of_once(monkeypatch, caplog):
    monkeypatch.setattr(undecided, "_said", set())
    for _ in range(2):
        layer = keras2.layers.BatchNormalization(input_shape=(3,), trainable=False)
        keras2.models.Sequential([layer]).compile("sgd", "mse")
    assert sum("is frozen normalizes by its moving averages" in each.getMessage() for each in caplog.records) == 1


@pytest.mark.parametrize("package", [keras1, keras2])
def test_states_of_all_layers_are_forgotten(package):
    cell = package.layers.LSTM(2, batch_input_shape=(2, 1, 3), stateful=True, return_sequences=True)
    model = package.models.Sequential([cell, package.layers.SimpleRNN(2, stateful=True)])
    states = [state for layer in model.layers for state in layer.states]
    for state in states:
        state.assign(np.ones(state.shape))
    model.reset_states()
    assert len(states) == 3
    assert not any(np.asarray(state).any() for state in states)


def test_layers_are_the_list_that_a_model_of_keras_0_holds():
    model = keras0.models.Sequential()
    for each in (keras0.layers.Dense(3, 4), keras0.layers.Dense(4, 7)):
        model.add(each)
    assert model.layers.pop().units == 7
    model.compile(loss="mse", optimizer="sgd")
    assert model.predict(X).shape == (8, 4)
    assert [each.units for each in model.layers] == [4]


def test_a_list_of_layers_that_is_changed_says_what_to_do():
    for package in (keras0, keras1, keras2):
        with pytest.raises(JobError, match=r"model\.add"):
            _later(package).layers.append(None)
    with pytest.raises(JobError, match=r"Received: `pop` of .*model\.pop\(\)"):
        _sequential().layers.pop()
    with pytest.raises(JobError, match=r"Model\(model.input, model.layers\[-2\].output\)"):
        _functional(keras2).layers.pop()
    assert json.loads(json.dumps([each.name for each in _sequential().layers[:1]]))
    assert len(tf_keras.models.Sequential([tf_keras.layers.Dense(1)]).layers) == 1
    plain = keras.Sequential([keras.layers.Dense(1)])
    plain.layers.pop()
    assert len(plain.layers) == 1


def _later(package):
    return package.models.Sequential([package.layers.Dense(3, 4) if package is keras0 else package.layers.Dense(4)])
