"""What values and calls of old Keras mean: numbers, not only names."""

import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras.own_layers import PerGate, hard_sigmoid
from keraunos.compat.run_unchanged.systems import SYSTEMS, system_named, with_keras
from keraunos.compat.tensorflow2 import keras as tf_keras
from keraunos.errors import JobError


def test_the_hard_sigmoid_has_its_old_slope():
    found = np.asarray(hard_sigmoid(np.array([-3.0, -1.0, 0.0, 1.0, 3.0], "float32")))
    assert found == pytest.approx([0.0, 0.3, 0.5, 0.7, 1.0])


@pytest.mark.parametrize(
    ("name", "deviation"),
    [("uniform", 0.05 / 3**0.5), ("normal", 0.05), ("he_normal", 0.1), ("glorot_uniform", 0.0816)],
)
def test_initial_weights_spread_as_they_did(name, deviation):
    layer = keras1.layers.Dense(100, init=name)
    layer.build((None, 200))
    assert float(np.std(np.asarray(layer.kernel))) == pytest.approx(deviation, rel=0.05)


def test_an_orthogonal_matrix_was_a_tenth_longer_and_each_gate_has_its_own():
    layer = keras1.layers.LSTM(4)
    layer.build((None, 5, 3))
    recurrent = np.asarray(layer.cell.recurrent_kernel)
    assert isinstance(layer.cell.recurrent_initializer, PerGate)
    gates = np.split(recurrent, 4, axis=1)
    for gate in gates:
        np.testing.assert_allclose(gate @ gate.T, 1.21 * np.eye(4), atol=1e-5)
    assert not np.allclose(gates[0], gates[1])
    assert layer.cell.recurrent_activation is hard_sigmoid


@pytest.mark.parametrize(
    ("package", "name", "named", "expected"),
    [
        (keras0, "RMSprop", {}, {"learning_rate": 0.001, "epsilon": 1e-6}),
        (keras1, "RMSprop", {}, {"learning_rate": 0.001, "epsilon": 1e-16}),
        (keras1, "Adagrad", {}, {"learning_rate": 0.01, "initial_accumulator_value": 0.0}),
        (keras1, "Adam", {"lr": 0.01}, {"learning_rate": 0.01, "epsilon": 1e-8}),
        (keras2, "Adam", {}, {"learning_rate": 0.001, "epsilon": 1e-7}),
        (keras2, "Adadelta", {}, {"learning_rate": 1.0}),
        (tf_keras, "Adadelta", {}, {"learning_rate": 0.001}),
        (keras1, "SGD", {"clipnorm": 1.0}, {"global_clipnorm": 1.0, "clipnorm": None}),
        (tf_keras, "SGD", {"clipnorm": 1.0}, {"global_clipnorm": None, "clipnorm": 1.0}),
    ],
)
def test_optimizers_have_the_defaults_of_their_day(package, name, named, expected):
    config = getattr(package.optimizers, name)(**named).get_config()
    assert {each: config[each] for each in expected} == {
        each: value if value is None else pytest.approx(value, rel=1e-6, abs=0) for each, value in expected.items()
    }


def test_the_rate_is_read_and_set_as_lr():
    optimizer = keras1.optimizers.SGD(lr=0.5)
    keras1.backend.set_value(optimizer.lr, 0.25)
    assert keras1.backend.get_value(optimizer.lr) == pytest.approx(0.25) == float(optimizer.learning_rate)


def test_decay_is_by_steps():
    optimizer, rates = keras1.optimizers.SGD(0.5, 0.9, 0.1), []
    for step in (0, 1, 10):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    assert rates == pytest.approx([0.5, 0.5 / 1.1, 0.25])


@pytest.mark.parametrize("package", [keras0, keras1, keras2])
def test_a_model_is_a_plain_one_and_trains_as_it_was_called(package):
    model = package.models.Sequential()
    first = package.layers.Dense(3, 4, activation="relu") if package is keras0 else package.layers.Dense(4, input_dim=3)
    model.add(first)
    model.add(package.layers.Dense(4, 2) if package is keras0 else package.layers.Dense(2))
    model.add(package.layers.Activation("softmax"))
    if package is keras0:
        model.compile("sgd", "categorical_crossentropy")
    else:
        model.compile("sgd", "mse", ["accuracy"])
    assert type(model) is keras.Sequential
    x, y = np.eye(3, dtype="float32"), np.eye(2, dtype="float32")[[0, 1, 0]]
    named = {"epochs" if package is keras2 else "nb_epoch": 2}
    history = model.fit(x, y, verbose=0, **named, **({"show_accuracy": True} if package is keras0 else {})).history
    assert set(history) == {"loss", "acc"}
    assert len(history["acc"]) == 2
    assert np.isscalar(model.evaluate(x, y, verbose=0)) == (package is keras0)
    assert model.predict_classes(x).shape == (3,)
    again = package.models.model_from_yaml(model.to_yaml())
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict(x), model.predict(x), atol=1e-6)


def test_a_generator_counts_rows_in_keras_1():
    model = keras1.models.Sequential([keras1.layers.Dense(1, input_dim=2)])
    model.compile("sgd", "mse")
    given = []

    def batches(size):
        while True:
            given.append(size)
            yield np.ones((size, 2)), np.ones((size, 1))

    history = model.fit_generator(batches(4), samples_per_epoch=10, nb_epoch=2, verbose=0)
    assert len(history.history["loss"]) == 2
    assert 6 <= len(given) < 20  # three batches an epoch, and what today's Keras looks at ahead
    with pytest.raises(JobError, match="no argument|must be one of"):
        model.fit(np.ones((4, 2)), np.ones((4, 1)), show_accuracy=True)


def test_the_kernel_of_keras_2_by_two_numbers():
    then = keras2.layers.Conv2D(4, 3, 3)
    assert (then.kernel_size, then.strides) == ((3, 3), (1, 1))
    in_tensorflow = tf_keras.layers.Conv2D(4, 3, 3)
    assert (in_tensorflow.kernel_size, in_tensorflow.strides) == ((3, 3), (3, 3))
    assert keras2.layers.GRU(3).cell.reset_after is False
    inner = keras2.layers.LSTM(3, input_shape=(4, 2), return_sequences=True)
    wrapped = [keras2.layers.Bidirectional(inner), keras2.layers.Bidirectional(keras2.layers.LSTM(3))]
    assert keras2.models.Sequential(wrapped).output_shape == (None, 6)
    assert tf_keras.layers.GRU(3).cell.reset_after is True


def test_what_a_name_is_beside_today():
    assert isinstance(keras1.layers.Dense(3), keras1.layers.Dense)
    assert isinstance(keras.layers.Dense(3), keras1.layers.Dense)
    assert keras1.layers.core.Dense is keras1.layers.Dense
    with pytest.raises(AttributeError, match="keras.layers has no 'LayerNormalization' here, as Keras 1 .*--keras"):
        _ = keras1.layers.LayerNormalization
    with pytest.raises(JobError, match=r"Graph cannot be kept .*Input and Model"):
        keras1.models.Graph()
    with pytest.raises(JobError, match="Nadam cannot be kept"):
        keras1.optimizers.Nadam()


def test_the_label_of_a_system_tells_its_keras():
    system = with_keras(SYSTEMS["elephas"], "1")
    assert system.label == "elephas:1"
    assert system_named("elephas:1") == system
    assert system.shadows == {"keras": "keraunos.compat.keras1"}
    assert system_named("elephas:3").shadows == {}
    zoo = system_named("zoo:2")
    assert zoo.shadows == {"tensorflow": "keraunos.compat.tensorflow1", "keras": "keraunos.compat.keras2"}
    with pytest.raises(JobError, match="--as elephas or --as zoo. Received: --keras 1 with --as sparkflow"):
        with_keras(SYSTEMS["sparkflow"], "1")
    with pytest.raises(JobError, match="`--keras` must be one of '0', '1', '2', '3'. Received: '4'"):
        with_keras(SYSTEMS["elephas"], "4")
