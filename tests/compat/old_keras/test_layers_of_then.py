"""Layers as they began and where their channels were: weights that are given or drawn, channels first."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import own_images
from keraunos.errors import JobError

RANDOM = np.random.default_rng(3)


def _drawn(*shapes):
    return [RANDOM.normal(size=shape).astype("float32") for shape in shapes]


def _gates(parts, order):
    """Kernel, recurrent kernel and bias of all gates in today's order."""
    return [np.concatenate([parts[3 * gate + part] for gate in order], axis=-1) for part in range(3)]


KERNEL = _drawn((3, 2), (2,))
IMAGE = _drawn((3, 3, 1, 2), (2,))
LENGTH = _drawn((3, 1, 4, 2), (2,))
LSTM = _drawn(*[(3, 2), (2, 2), (2,)] * 4)
GRU = _drawn(*[(3, 2), (2, 2), (2,)] * 3)
RNN = _drawn((3, 2), (2, 2), (2,))
GIVEN = {
    "Dense": (lambda: keras1.layers.Dense(2, input_dim=3, weights=KERNEL), KERNEL),
    "Dense of Keras 2": (lambda: keras2.layers.Dense(2, input_dim=3, weights=KERNEL), KERNEL),
    "Dense of Keras 0": (lambda: keras0.layers.Dense(3, 2, weights=KERNEL), KERNEL),
    "Convolution2D": (lambda: keras1.layers.Convolution2D(2, 3, 3, input_shape=(6, 6, 1), weights=IMAGE), IMAGE),
    "Convolution1D": (
        lambda: keras1.layers.Convolution1D(2, 3, input_dim=4, input_length=5, weights=LENGTH),
        [LENGTH[0][:, 0], LENGTH[1]],
    ),
    "SimpleRNN": (lambda: keras1.layers.SimpleRNN(2, input_shape=(4, 3), weights=RNN), RNN),
    # They were input, cell, forget and output gate; today they are input, forget, cell and output gate.
    "LSTM": (lambda: keras1.layers.LSTM(2, input_shape=(4, 3), weights=LSTM), _gates(LSTM, (0, 2, 1, 3))),
    "GRU": (lambda: keras1.layers.GRU(2, input_shape=(4, 3), weights=GRU), _gates(GRU, (0, 1, 2))),
}


@pytest.mark.parametrize("what", GIVEN)
def test_a_layer_begins_with_the_weights_that_it_is_given(what):
    make, expected = GIVEN[what]
    package = keras2 if what.endswith("2") and what.startswith("Dense") else keras1
    model = package.models.Sequential([make()])
    for found, array in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(found, array)


def test_weights_that_do_not_fit_or_may_mean_two_things_are_refused():
    with pytest.raises(JobError, match=r"must have the shapes \[\(3, 2\), \(2,\)\]"):
        keras1.models.Sequential([keras1.layers.Dense(2, input_dim=3, weights=KERNEL[:1])])
    with pytest.raises(JobError, match="Theano"):
        keras1.layers.Convolution2D(2, 3, 3, dim_ordering="th", weights=_drawn((2, 1, 3, 3), (2,)))


MOVED = {
    "Conv2D": ((2, 3, 9, 9), {"filters": 4, "kernel_size": (3, 2), "strides": 2, "padding": "same"}),
    "Conv3D": ((2, 3, 5, 5, 5), {"filters": 4, "kernel_size": 2, "activation": "relu"}),
    "Conv2DTranspose": ((2, 3, 4, 4), {"filters": 2, "kernel_size": 3, "strides": 2}),
    "SeparableConv2D": ((2, 3, 6, 6), {"filters": 4, "kernel_size": 3}),
    "DepthwiseConv2D": ((2, 3, 6, 6), {"kernel_size": 3}),
    "MaxPooling2D": ((2, 3, 6, 6), {"pool_size": 2}),
    "MaxPooling3D": ((2, 3, 6, 6, 6), {"pool_size": 2}),
    "AveragePooling2D": ((2, 3, 7, 7), {"pool_size": 2, "padding": "same"}),
    "AveragePooling3D": ((2, 3, 6, 6, 6), {"pool_size": 2}),
}


@pytest.mark.parametrize("name", MOVED)
def test_layers_that_move_channels_give_what_keras_gives(name):
    shape, named = MOVED[name]
    x = RANDOM.normal(size=shape).astype("float32")
    theirs = getattr(keras.layers, name)(data_format="channels_first", **named)
    expected = np.asarray(theirs(x))
    ours = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(getattr(own_images, name)(data_format="channels_first", **named))
    )
    ours.build(x.shape)
    ours.set_weights([each + 0.0 for each in theirs.get_weights()])
    found = np.asarray(ours(x))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert tuple(ours.compute_output_shape(x.shape)) == found.shape
    assert ours.name.startswith(theirs.name.rstrip("_0123456789"))


LEARNS = """
import numpy as np
from keraunos.compat import keras0, keras2

L = keras0.layers
model = keras0.models.Sequential()
for layer in (
    L.Convolution2D(2, 3, 3, border_mode="same", input_shape=(1, 6, 6)),
    L.MaxPooling2D(pool_size=(2, 2)),
    L.AveragePooling2D((2, 2)),
    L.Flatten(),
    L.Dense(1),
):
    model.add(layer)
model.compile(loss="mse", optimizer="sgd")
model.fit(np.ones((4, 1, 6, 6)), np.ones(4), nb_epoch=1, verbose=0)
assert [tuple(each.shape) for each in model.weights] == [(3, 3, 1, 2), (2,), (2, 1), (1,)]

L = keras2.layers
model = keras2.models.Sequential()
for layer in (
    L.Conv2D(2, (3, 3), input_shape=(1, 6, 6), data_format="channels_first"),
    L.Conv2DTranspose(2, 3, strides=2, data_format="channels_first"),
    L.SeparableConv2D(2, 3, data_format="channels_first"),
    L.MaxPooling2D((2, 2), None, "valid", "channels_first"),
    L.Flatten(),
    L.Dense(1),
):
    model.add(layer)
model.compile("sgd", "mse")
model.fit(np.ones((4, 1, 6, 6)), np.ones(4), epochs=1, verbose=0)
"""


@pytest.mark.extended
def test_images_with_channels_first_are_learned_from_on_a_cpu_with_tensorflow():
    pytest.importorskip("tensorflow")
    # Where oneDNN may be used, some processors can do it without help.
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = subprocess.run([sys.executable, "-c", LEARNS], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def _spread(layer, *shape):
    layer.build((None, *shape))
    return max(np.abs(layer.get_weights()[0]).ravel())


def _glorot(fan_in, fan_out):
    return (6 / (fan_in + fan_out)) ** 0.5


# The largest weight, by the fans of 0.3.3 and 1.2.2 (`get_fans`) and the shapes that kernels had there.
FANS = {
    "Convolution2D of Keras 0": (
        lambda: _spread(keras0.layers.Convolution2D(64, 3, 3), 8, 16, 16),
        _glorot(8 * 9, 64),
    ),
    "Convolution2D of Keras 1": (lambda: _spread(keras1.layers.Convolution2D(64, 3, 3), 16, 16, 8), _glorot(72, 576)),
    "Convolution1D of Keras 0": (
        lambda: _spread(keras0.layers.Convolution1D(64, 5, init="glorot_uniform"), 20, 32),
        _glorot(32 * 5, 64),
    ),
    "Convolution1D of Keras 1": (
        lambda: _spread(keras1.layers.Convolution1D(64, 5, init="glorot_uniform"), 20, 32),
        _glorot(32 * 64, 5 * 32 * 64),
    ),
    "Convolution3D of Keras 1": (
        lambda: _spread(keras1.layers.Convolution3D(16, 3, 3, 3), 8, 8, 8, 4),
        _glorot(4 * 9, 16 * 9),
    ),
    "Deconvolution2D of Keras 1": (
        lambda: _spread(
            keras1.layers.Deconvolution2D(32, 3, 3, output_shape=(None, 10, 10, 32), init="he_uniform"), 8, 8, 4
        ),
        (6 / (4 * 9)) ** 0.5,
    ),
    "ConvLSTM2D of Keras 1": (
        lambda: _spread(keras1.layers.ConvLSTM2D(16, 3, 3), 2, 8, 8, 4),
        _glorot(3 * 4 * 16, 3 * 4 * 16),
    ),
    "MaxoutDense of Keras 0": (lambda: _spread(keras0.layers.MaxoutDense(100), 100), _glorot(200, 200)),
    "MaxoutDense of Keras 0.1": (
        lambda: _spread(keras0.layers.MaxoutDense(100, 100, 4), 100),
        _glorot(100 * 100, 4),
    ),
    "MaxoutDense of Keras 1": (lambda: _spread(keras1.layers.MaxoutDense(100), 100), _glorot(200, 200)),
}


@pytest.mark.parametrize("what", FANS)
def test_weights_are_drawn_by_the_fans_of_then(what):
    largest, expected = FANS[what]
    assert largest() == pytest.approx(expected, rel=0.01)


def test_an_orthogonal_kernel_was_one_by_its_first_axis():
    for ordering, shape in (("tf", (8, 8, 2)), ("th", (2, 8, 8))):
        layer = keras1.layers.Convolution2D(5, 3, 3, init="orthogonal", dim_ordering=ordering)
        layer.build((None, *shape))
        kernel = layer.get_weights()[0]  # rows, columns, channels, filters
        flat = kernel.reshape(3, -1) if ordering == "tf" else kernel.transpose(3, 2, 0, 1).reshape(5, -1)
        np.testing.assert_allclose(flat @ flat.T, 1.21 * np.eye(len(flat)), atol=1e-5)


def test_drawn_weights_are_drawn_again_elsewhere():
    layer = keras1.layers.Convolution1D(64, 5, init="glorot_uniform")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert _spread(again, 20, 32) == pytest.approx(_glorot(32 * 64, 5 * 32 * 64), rel=0.01)


def test_one_initializer_draws_anew_for_each_layer():
    anew = keras2.initializers.RandomNormal(stddev=0.02)
    for first, second in (
        (keras2.layers.Dense(3, kernel_initializer=anew), keras2.layers.Dense(3, kernel_initializer=anew)),
        (keras2.layers.Dense(3, None, True, anew), keras2.layers.Dense(3, None, True, anew)),
        (keras2.layers.Embedding(3, 3, anew), keras2.layers.Embedding(3, 3, anew)),
    ):
        for layer in (first, second):
            layer.build((None, 3))
        assert not np.allclose(first.get_weights()[0], second.get_weights()[0])
        assert np.std(first.get_weights()[0]) < 0.1
    seeded = keras2.initializers.RandomNormal(stddev=0.02, seed=1)
    both = [keras2.layers.Dense(3, kernel_initializer=seeded) for _ in range(2)]
    for layer in both:
        layer.build((None, 3))
    np.testing.assert_array_equal(both[0].get_weights()[0], both[1].get_weights()[0])
    highway = keras1.layers.Highway()
    highway.build((None, 3))
    assert not np.allclose(highway.get_weights()[0], highway.get_weights()[1])


def test_a_penalty_without_a_size_is_a_hundredth():
    weights = np.array([[1.0, -2.0]], "float32")
    regularizers = keras2.regularizers
    for penalty in (regularizers.l1_l2(), regularizers.get("l1_l2"), regularizers.get("l1")):
        assert float(penalty(weights)) == pytest.approx(0.01 * (3 if penalty.__class__.__name__ == "L1" else 8))
    assert float(regularizers.l1_l2(0.1)(weights)) == pytest.approx(0.1 * 3 + 0.01 * 5)
    layer = keras2.layers.Dense(2, kernel_regularizer="l1_l2")
    layer.build((None, 1))
    layer.set_weights([weights, np.zeros(2)])
    assert float(layer.losses[0]) == pytest.approx(0.08)
    assert float(keras1.layers.Dense(2, W_regularizer="l1l2").kernel_regularizer(weights)) == pytest.approx(0.08)
    assert float(regularizers.L1L2()(weights)) == 0


@pytest.mark.parametrize("package", [keras0, keras1, keras2])
def test_the_function_of_a_name_is_that_of_the_day(package):
    one = np.array([1.0], "float32")
    assert float(np.asarray(package.activations.get("hard_sigmoid")(one))[0]) == pytest.approx(0.7)
    assert package.activations.get("relu") is keras.activations.relu
    by_place = keras2.layers.Dense(1, "hard_sigmoid")
    assert float(np.asarray(by_place.activation(one))[0]) == pytest.approx(0.7)


def test_the_scale_of_a_batch_normalization_began_as_then():
    early = keras0.layers.BatchNormalization((400,))
    early.build((None, 400))
    gamma = early.get_weights()[0]
    assert 0.045 < max(abs(gamma)) <= 0.05
    late = keras0.layers.BatchNormalization()
    late.build((None, 4))
    assert late.get_weights()[0].tolist() == [1, 1, 1, 1]
