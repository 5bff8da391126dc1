"""Which Keras a program's source tells, as a table."""

import pytest

from keraunos.compat.old_keras.evidence import day_of, sources_of
from keraunos.errors import JobError

LAYERS = "from keras.layers import Dense, Convolution2D, Conv2D\n"
TOLD = {
    "nothing": ("import keras\nkeras.layers.Dense(10)", "3"),
    "no Keras at all": ("print(nb_epoch)\nf(nb_epoch=2, lr=0.1)", "3"),
    "today's names": (LAYERS + "Conv2D(32, kernel_size=3, strides=3)", "3"),
    "an activation second": (LAYERS + "Dense(10, 'relu')", "3"),
    "a kernel as a tuple": (LAYERS + "Conv2D(32, (3, 3), 2)", "3"),
    "input and output": (LAYERS + "Dense(784, 128)", "0"),
    "show_accuracy": (LAYERS + "model.evaluate(x, y, show_accuracy=True)", "0"),
    "class_mode": (LAYERS + "model.compile(loss='mse', optimizer='sgd', class_mode='binary')", "0"),
    "four numbers": (LAYERS + "Convolution2D(32, 1, 3, 3)", "0"),
    "nb_epoch": (LAYERS + "model.fit(x, y, nb_epoch=3)", "1"),
    "a kernel by two numbers, with more": (LAYERS + "Convolution2D(32, 3, 3, border_mode='same')", "1"),
    "an initializer second": (LAYERS + "Dense(10, 'uniform')", "1"),
    "input of Model": ("from keras.models import Model\nModel(input=a, output=b)", "1"),
    "merge": ("from keras.layers import merge", "2"),
    "keras.layers.core": ("from keras.layers.core import Dense", "2"),
    "np_utils": ("from keras.utils import np_utils", "2"),
    "lr": ("from keras.optimizers import SGD\nSGD(lr=0.1)", "2"),
    "metrics third": (LAYERS + "model.compile('sgd', 'mse', ['acc'])", "2"),
    "lr of tf.keras": ("from tensorflow.keras.optimizers import SGD\nSGD(lr=0.1)", "2"),
    "nb_epoch with units": (LAYERS + "Dense(units=3)\nmodel.fit(x, y, nb_epoch=3)", "2"),
    "lr of elephas.optimizers": ("import keras\nfrom elephas.optimizers import SGD\nSGD(lr=0.1)", "3"),
    "arguments of others": ("import keras, xgboost\nxgboost.XGBClassifier(subsample=0.5, init=3)", "3"),
    "methods of others": ("import keras\nfrom omegaconf import OmegaConf\nOmegaConf.to_yaml(c)", "3"),
    "predict_proba of others": ("import keras\nclassifier.predict_proba(x)", "3"),
    "Python 2": ("print 'x'\n" + LAYERS + "model.fit(x, y, nb_epoch=3)", "1"),
    "an ordering of images": ("from keras import backend as K\nK.set_image_dim_ordering('th')", "1"),
    "to_yaml": ("import keras\nmodel.to_yaml()", "2"),
}  # fmt: skip


@pytest.mark.parametrize("what", TOLD)
def test_the_day_of_a_program(what):
    source, day = TOLD[what]
    assert day_of([("program.py", source.encode())])[0] == day


def test_a_call_that_means_two_things_is_refused_with_both():
    source = LAYERS + "\nConv2D(32, 3, 3)"
    with pytest.raises(JobError, match=r"program.py:3: .*kernel of 3 by 3 until Keras 2.3.*steps of 3 today.*--keras"):
        day_of([("program.py", source.encode())])


def test_words_of_different_days_are_refused():
    source = LAYERS + "Dense(784, 128)\nDense(units=3)"
    with pytest.raises(JobError, match=r"Dense\(inputs, outputs\) \(program.py:2\) is of Keras 0; .*Keras 2 or 3"):
        day_of([("program.py", source.encode())])


def test_modules_beside_the_program_tell_too(tmp_path):
    (tmp_path / "networks.py").write_text("from keras.layers.core import MaxoutDense\n")
    (tmp_path / "other.py").write_text("model.evaluate(x, y, show_accuracy=True)\n")
    script = tmp_path / "program.py"
    script.write_text("import keras, networks\n")
    assert day_of(sources_of(script, script.read_bytes()))[0] == "1"


NB_EPOCH = "model.fit(x, nb_epoch=2)"
BESIDE_TENSORFLOW_1 = {
    "TensorFlow's own Keras": ("from tensorflow.keras.layers import Dense\nDense(units=3)\n", "3"),
    "Keras by itself": ("from keras import backend as K\nK.set_image_dim_ordering('th')\n", "1"),
}


@pytest.mark.parametrize("what", BESIDE_TENSORFLOW_1)
def test_beside_tensorflow_1_only_keras_by_itself_has_a_day(what):
    source, day = BESIDE_TENSORFLOW_1[what]
    assert day_of([("program.py", (source + NB_EPOCH).encode())], "zoo", tensorflows=False)[0] == day
