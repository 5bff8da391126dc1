"""Files, names and arguments of then that today's Keras takes for something else, or does not know."""

import json

import h5py
import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.tensorflow2 import keras as tf_keras
from keraunos.errors import JobError, ModelError

CONFIG = {
    "class_name": "Sequential",
    "config": [{"class_name": "Dense", "config": {"name": "dense_1", "units": 1, "activation": "hard_sigmoid"}}],
}


@pytest.mark.parametrize(("package", "version"), [(keras1, "1.2.2"), (keras2, "2.2.4"), (tf_keras, "2.4.0")])
def test_a_model_that_an_older_keras_saved_is_refused(package, version, tmp_path):
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update(keras_version=version.encode(), model_config=json.dumps(CONFIG).encode())
    with pytest.raises(ModelError, match=rf"model\.h5.*Keras {version}.*load_weights"):
        package.models.load_model(str(path))
    with pytest.raises(ModelError, match=f"The text .*Keras {version}"):
        package.models.model_from_json(json.dumps({**CONFIG, "keras_version": version}))


def test_a_model_that_was_saved_here_is_read(tmp_path):
    with pytest.raises(ModelError, match="an older Keras"):
        keras0.models.model_from_json(json.dumps({"name": "Sequential", "layers": []}))
    model = keras2.models.Sequential([keras2.layers.Dense(1, input_dim=3, activation="hard_sigmoid")])
    model.set_weights([np.ones((3, 1)), np.zeros(1)])
    model.compile("sgd", "mse")
    model.save(str(tmp_path / "model.h5"))
    for read in (keras2.models.load_model(str(tmp_path / "model.h5")), keras2.models.model_from_json(model.to_json())):
        read.set_weights(model.get_weights())
        assert read.predict(np.full((1, 3), 0.5))[0, 0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (lambda: keras1.layers.ZeroPadding2D({"top_pad": 1, "left_pad": 2}), (5, 5, 1), ((1, 0), (2, 0))),
        (lambda: keras1.layers.ZeroPadding2D((1, 2, 3, 4)), (5, 5, 1), ((1, 2), (3, 4))),
        (lambda: keras1.layers.ZeroPadding2D((1, 2)), (5, 5, 1), ((1, 1), (2, 2))),
        (lambda: keras1.layers.ZeroPadding1D({"right_pad": 2}), (5, 1), ((0, 2),)),
    ],
)
def test_zeros_around_an_input(layer, shape, expected):
    x = np.ones((1, *shape), "float32")
    found = np.asarray(keras1.models.Sequential([keras.Input(shape), layer()]).predict(x))
    np.testing.assert_array_equal(found, np.pad(x, [(0, 0), *expected, (0, 0)]))


def test_zeros_on_a_side_that_there_is_not_are_refused():
    with pytest.raises(JobError, match="top_pad.*Received.*'up'"):
        keras1.layers.ZeroPadding2D({"up": 1})


def test_layers_answer_to_their_names_of_then():
    model = keras1.models.Sequential([keras1.layers.Dense(4, input_dim=3), keras1.layers.LSTM(2, name="loop")][:1])
    layer = model.layers[0]
    assert (layer.input_shape, layer.output_shape) == ((None, 3), (None, 4))
    np.testing.assert_array_equal(keras1.backend.get_value(layer.W), model.get_weights()[0])
    np.testing.assert_array_equal(keras1.backend.get_value(layer.b), model.get_weights()[1])
    assert not hasattr(keras1.layers.Dense(3), "output_shape")
    assert not hasattr(keras1.layers.Flatten(), "W")
    with pytest.raises(JobError, match="get_weights"):
        _ = keras1.layers.LSTM(2).W
    assert model.output_shape == (None, 4)

    class Own(keras2.layers.Layer):
        def build(self, shape):
            self.W = self.add_weight(shape=(shape[-1], 2), name="W")
            self.output_shape = (None, 2)

        def call(self, x):
            return keras.ops.matmul(x, self.W)

    own = Own()
    assert own(np.ones((1, 3), "float32")).shape == (1, 2)
    assert (tuple(own.W.shape), tuple(own.output_shape)) == ((3, 2), (None, 2))


def test_keras_2_took_these_names_of_keras_1():
    layers = keras2.layers
    wide = layers.AtrousConvolution2D(4, 3, 3, atrous_rate=(2, 2))
    assert (wide.kernel_size, wide.dilation_rate) == ((3, 3), (2, 2))
    turned = layers.Deconvolution2D(4, 3, 3, output_shape=(None, 8, 8, 4), subsample=(2, 2))
    assert (type(turned), turned.strides) == (keras.layers.Conv2DTranspose, (2, 2))
    assert layers.MaxPooling1D(pool_length=2, stride=3).strides == (3,)
    assert layers.LSTM(2, input_dim=3, input_length=4, consume_less="gpu").units == 2
    with pytest.raises(JobError, match="consume_less"):
        layers.GRU(2, consume_less="disk")
