"""What changed within a day: refused with both meanings, kept, or told in a sentence; from Keras's signatures."""

import keras
import numpy as np
import pytest

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import undecided
from keraunos.compat.old_keras.evidence import day_of
from keraunos.compat.tensorflow2 import keras as tf_keras
from keraunos.errors import JobError

IMPORTS = """
import keras
from keras.layers import Conv1D, Conv2D, Convolution1D, Convolution2D, Dense
from keras.optimizers import SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax
from keras.callbacks import EarlyStopping, ModelCheckpoint
"""
# Programs that mean two things, with words of both meanings that the refusal has.
TWO_MEANINGS = {
    "Convolution2D(32, 3, 3)": ("kernel of 3 by 3", "steps of 3"),
    "Conv2D(nb_filters, nb_conv, nb_conv)": ("kernel of nb_conv by nb_conv", "steps of nb_conv"),
    "keras.layers.Conv2D(32, 3, stride)": ("kernel of 3 by stride", "steps of stride"),
    "Convolution1D(32, 1, 3)": ("size of its input", "steps"),
    "SGD(0.1, 0.9, 1e-6, True)": ("`decay`", "`nesterov`"),
    "keras.optimizers.RMSprop(0.001, 0.9, 1e-6)": ("`epsilon`", "`momentum`"),
    "Adagrad(0.01, 1e-6)": ("`epsilon`", "`initial_accumulator_value`"),
    "Adam(0.001, 0.9, 0.999, 1e-8, 1e-4)": ("`decay`", "`amsgrad`"),
    "EarlyStopping('val_loss', 3)": ("`patience`", "`min_delta`"),
    "model.compile(sgd, 'mse', metrics)": ("`metrics`", "`loss_weights`"),
    "ModelCheckpoint('a', 'val_loss', 0, True, 'auto')": ("`mode`", "`save_weights_only`"),
}


@pytest.mark.parametrize("call", TWO_MEANINGS)
def test_a_program_that_means_two_things_is_refused_with_both(call):
    with pytest.raises(JobError) as told:
        day_of([("program.py", f"{IMPORTS}{call}".encode())])
    assert all(word in str(told.value) for word in (*TWO_MEANINGS[call], "program.py:6", "--keras")), told.value
    # Where something tells, it is that day's.
    source = f"{IMPORTS}{call}\nmodel.fit(x, y, nb_epoch=3)"
    assert day_of([("program.py", source.encode())])[0] == "1"


@pytest.mark.parametrize(
    "call",
    [
        "scipy.SGD(0.1, 0.9, 1e-6)",
        "re.compile(pattern, flags, more)",
        "Conv1D(32, 3, strides=2)",
        "SGD(0.1, 0.9)",
        "SGD(0.1, 0.9, True)",
        "EarlyStopping('loss', 0.01)",
        "Convolution2D(32, (3, 3), 2)",
    ],
)
def test_a_program_that_means_one_thing_is_todays(call):
    source = f"import scipy, re\n{IMPORTS}{call}"
    assert day_of([("program.py", source.encode())])[0] == "3"


def test_tensorflows_keras_had_most_arguments_in_todays_places():
    source = "from tensorflow.keras.layers import Conv2D\nfrom tensorflow.keras.optimizers import RMSprop\n"
    source += "Conv2D(32, 3, 3)\nRMSprop(0.001, 0.9, 0.5)\n"
    assert day_of([("program.py", source.encode())])[0] == "3"
    with pytest.raises(JobError, match="`loss_weights` today"):
        day_of([("program.py", f"{source}model.compile(sgd, 'mse', metrics)".encode())])


REFUSED = {
    "GRU without activation": (lambda: keras0.layers.GRU(8), "'sigmoid' until 0.3.2 and 'tanh' in 0.3.3"),
    "a third number of Convolution1D": (
        lambda: keras0.layers.Convolution1D(8, 1, 3),
        "`stack_size` until 0.1.1 and after `input_dim`",
    ),
    "the sixth argument of Dense": (
        lambda: keras0.layers.Dense(8, 4, "uniform", "relu", None, None),
        "`W_regularizer` until 0.1.1 and `name`",
    ),
    "the third argument of MaxPooling2D": (
        lambda: keras0.layers.MaxPooling2D((2, 2), (2, 2), True),
        "`ignore_border` until 0.2 and `border_mode`",
    ),
    "a stride of True": (lambda: keras0.layers.MaxPooling2D((2, 2), True), "`ignore_border` stood"),
    "the fourth argument of Embedding": (lambda: keras0.layers.Embedding(9, 2, "uniform", None), "`input_length`"),
    "BatchNormalization of images": (lambda: keras0.layers.BatchNormalization((3, 8, 8)), "every entry"),
    "the second argument of Highway": (lambda: keras1.layers.Highway("uniform", "relu"), "`transform_bias` until 1.1"),
    "a constraint along filters": (
        lambda: keras0.layers.Convolution2D(8, 3, 3, 3, W_constraint=keras0.constraints.maxnorm(2)),
        "along the filters in the old Keras",
    ),
    "patience or min_delta": (lambda: keras1.callbacks.EarlyStopping("loss", 3), "`patience` before Keras 1.2"),
    "verbose or monitor": (lambda: keras0.callbacks.ModelCheckpoint("a.keras", 1, True), "Before Keras 0.1.2"),
    "a dilation or a depth": (
        lambda: keras2.layers.SeparableConv2D(8, (3, 3), (1, 1), "same", None, 2),
        "`depth_multiplier` until 2.1 and `dilation_rate`",
    ),
    "a penalty of a batch": (lambda: keras2.layers.Dense(2, activity_regularizer="l2"), "rows of a batch"),
    "a name of TensorFlow's SGD": (lambda: tf_keras.optimizers.SGD(0.1, 0.9, 1e-6, True), "momentum, nesterov"),
    "ten epochs or one": (lambda: _compiled(keras2).fit(np.ones((2, 3)), np.ones((2, 2))), "10 until Keras 2.0 and 1"),
    "an accuracy of one": (
        lambda: _compiled(keras0, 1, class_mode="categorical").evaluate(np.ones((2, 3)), [1, 1], show_accuracy=True),
        "`class_mode` must be 'binary'",
    ),
}  # fmt: skip


def _compiled(package, width=2, **named):
    size = (3, width) if package is keras0 else (width,)
    first = package.layers.Dense(*size, **({} if package is keras0 else {"input_dim": 3}), activation="sigmoid")
    model = package.models.Sequential([first])
    model.compile("sgd", "binary_crossentropy", **named)
    return model


@pytest.mark.parametrize("what", REFUSED)
def test_a_call_that_meant_two_networks_is_refused(what):
    make, told = REFUSED[what]
    with pytest.raises(JobError, match=told):
        make()


TOLD = {
    "RMSprop of Keras 1": (keras1.optimizers.RMSprop, "1e-06 until 1.0.2 and 1e-08"),
    "RMSprop by its name": (lambda: keras1.optimizers.get("adagrad"), "1e-06 until 1.0.2 and 1e-08"),
    "Adam of Keras 2": (keras2.optimizers.Adam, "1e-08 until 2.1.2 and 1e-07"),
    "LSTM of Keras 2": (lambda: keras2.layers.LSTM(3), "'sigmoid' in 2.3 and 'hard_sigmoid'"),
    "BatchNormalization of Keras 1": (keras1.layers.BatchNormalization, "1e-05 until 1.1 and 0.001"),
    "BatchNormalization of Keras 0": (keras0.layers.BatchNormalization, "'uniform' until 0.3.2 and 'one'"),
    "MaxoutDense of Keras 0": (lambda: keras0.layers.MaxoutDense(4), "until 0.3.2"),
    "Convolution1D of Keras 1": (lambda: keras1.layers.Convolution1D(3, 3), "'uniform' until 1.1"),
    "channels of Keras 1": (keras1.layers.MaxPooling2D, "channels first until Keras 1.0"),
    "ImageDataGenerator of Keras 1": (lambda: _generator(keras1), "`featurewise_center` meant True until 1.0.1"),
    "he_normal of Keras 2": (
        lambda: keras2.layers.Dense(3, kernel_initializer="he_normal"),
        "narrower by an eighth until Keras 2.1",
    ),
    "cosine_proximity of Keras 2": (
        lambda: keras2.models.Sequential([keras2.layers.Dense(3)]).compile("sgd", "cosine_proximity"),
        "a mean over the outputs until Keras 2.0.8",
    ),
    "rows of weight 0": (
        lambda: _compiled(keras1).fit(np.ones((2, 3)), np.ones((2, 2)), class_weight={0: 0.0, 1: 1.0}, nb_epoch=1),
        "weight 0",
    ),
}
DECIDED = (
    lambda: keras1.optimizers.RMSprop(epsilon=1e-6),
    lambda: keras1.optimizers.RMSprop(0.001, 0.9, 1e-6),
    keras1.optimizers.Adam,
    tf_keras.optimizers.Adam,
    lambda: keras2.layers.LSTM(3, "tanh", "sigmoid"),
    lambda: keras1.layers.BatchNormalization(1e-5, 0, -1, 0.9),
    lambda: keras0.layers.BatchNormalization((4,)),
    lambda: keras0.layers.GRU(4, 3),
    lambda: keras1.layers.Convolution2D(3, 3, 3, dim_ordering="th"),
)


def _generator(package):
    from importlib import import_module

    return import_module(f"{package.__name__}.preprocessing.image").ImageDataGenerator()


@pytest.mark.parametrize("what", TOLD)
def test_an_undecided_default_is_told_once(what, monkeypatch, caplog):
    monkeypatch.setattr(undecided, "_said", set())
    make, told = TOLD[what]
    make()
    make()
    assert sum(told in each.getMessage() for each in caplog.records) == 1


def test_a_decided_one_is_not(monkeypatch, caplog):
    monkeypatch.setattr(undecided, "_said", set())
    for make in DECIDED:
        make()
    assert not caplog.records


def test_places_of_optimizers():
    keras_23 = keras2.optimizers.SGD(0.1, 0.9, True).get_config()
    assert (keras_23["nesterov"], float(keras_23["learning_rate"])) == (True, pytest.approx(0.1))
    in_tensorflow = tf_keras.optimizers.RMSprop(0.001, 0.9, 0.5).get_config()
    assert in_tensorflow["momentum"] == 0.5
    assert tf_keras.optimizers.Adagrad(0.1, 0.2).get_config()["initial_accumulator_value"] == 0.2


def test_a_mode_that_stood_before_save_weights_only():
    made = keras0.callbacks.ModelCheckpoint("a.keras", "val_acc", 0, True, "max")
    assert (made.save_weights_only, made.save_best_only, made.mode) == (
        True,
        True,
        "max",
    )  # Keras 0 saved weights alone


def test_the_accuracy_of_the_class_mode_and_of_the_loss():
    x = np.eye(3, dtype="float32")
    y = np.array([[1, 1], [1, 0], [0, 0]], "float32")
    weights = [np.array([[5, 1], [5, -1], [-1, 1]], "float32"), np.zeros(2, "float32")]
    by_output, by_row = 5 / 6, 2 / 3  # the second output of the last row is wrong
    for package, named in (
        (keras0, {"class_mode": "binary"}),
        (keras1, {"metrics": ["accuracy"]}),
        (keras2, {"metrics": ["accuracy"]}),
    ):
        model = _compiled(package, **named)
        model.set_weights(weights)
        shown = {"show_accuracy": True} if package is keras0 else {}
        assert model.evaluate(x, y, verbose=0, **shown)[1] == pytest.approx(by_output)
    model = _compiled(keras0, class_mode="categorical")
    model.set_weights(weights)
    assert model.evaluate(x, y, show_accuracy=True, verbose=0)[1] == pytest.approx(by_row)
    assert list(model.predict_classes(x, verbose=0)) == [0, 0, 1]


def test_the_accuracy_of_each_output_of_a_model():
    tensor = keras1.layers.Input(shape=(3,))
    outputs = [keras1.layers.Dense(2, activation=each, name=each)(tensor) for each in ("sigmoid", "softmax")]
    losses = {"sigmoid": "binary_crossentropy", "softmax": "categorical_crossentropy"}
    for loss in (losses, list(losses.values())):
        model = keras1.models.Model(input=tensor, output=outputs)
        model.compile("sgd", loss, ["accuracy"])
        y = np.array([[1, 1], [0, 1]], "float32"), np.array([[1, 0], [0, 1]], "float32")
        model.set_weights([np.zeros((3, 2)), np.array([9.0, -9.0]), np.zeros((3, 2)), np.array([9.0, -9.0])])
        found = model.evaluate(
            np.ones((2, 3)), list(y) if isinstance(loss, list) else dict(zip(losses, y, strict=True)), verbose=0
        )
        assert sorted(found[-2:]) == [pytest.approx(0.25), pytest.approx(0.5)]


def test_functions_of_the_backend_have_their_axes():
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    backend = keras1.backend
    assert np.asarray(backend.argmax(x)).tolist() == [2, 2]
    assert np.asarray(backend.concatenate([x, x])).shape == (2, 6)
    assert np.asarray(backend.cumsum(x)).tolist() == [[0, 1, 2], [3, 5, 7]]
    assert np.asarray(backend.expand_dims(x)).shape == (2, 3, 1)
    assert float(np.asarray(backend.sqrt(np.float32(-1)))) == 0


def test_images_were_centered_in_keras_0():
    made = _generator(keras0)
    assert (made.featurewise_center, made.featurewise_std_normalization, made.data_format) == (
        True,
        True,
        "channels_first",
    )


def test_the_share_of_a_highway_begins_where_it_did():
    for package, bias in ((keras0, -2), (keras1, 1)):
        layer = package.layers.Highway()
        layer.build((None, 2))
        assert np.asarray(layer.carry_bias).tolist() == [bias, bias]
    assert isinstance(keras0.layers.Highway(transform_bias=-1), keras.layers.Layer)
