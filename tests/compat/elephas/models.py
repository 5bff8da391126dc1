"""Small models and data for the tests of Elephas's front-end."""

import keras
import numpy as np
from sklearn.datasets import load_diabetes, load_digits


def digits(rows=400):
    """Features and one-hot labels."""
    data = load_digits()
    return (data.data[:rows] / 16).astype("float32"), np.eye(10, dtype="float32")[data.target[:rows]]


def diabetes(rows=200):
    """Features and a number for each row, both near 1 in size."""
    x, y = load_diabetes(return_X_y=True)
    return (x[:rows] * 20).astype("float32"), ((y[:rows] - 150) / 75).astype("float32")


def classifier(*, metrics=("accuracy",), rate=0.1, seed=7, compiled=True):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [keras.layers.Input((64,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(10, "softmax")]
    )
    if compiled:
        model.compile(keras.optimizers.SGD(rate), "categorical_crossentropy", metrics=list(metrics))
    return model


def regressor(seed=7):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.layers.Input((10,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"])
    return model


def two_inputs(seed=7):
    """Two inputs of two numbers each, which are added, multiplied and told apart."""
    keras.utils.set_random_seed(seed)
    left, right = keras.Input((2,), name="left"), keras.Input((2,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    total = keras.layers.Dense(1, name="total")(joined)
    sign = keras.layers.Dense(1, activation="sigmoid", name="sign")(joined)
    model = keras.Model([left, right], [total, sign])
    model.compile(keras.optimizers.Adam(0.05), {"total": "mse", "sign": "binary_crossentropy"})
    return model
