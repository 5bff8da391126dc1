"""Small Keras models of every kind that tests of the estimators need, with weights that are the same each time."""

from __future__ import annotations

import keras
from keras import layers


def mlp(inputs=3, units=4, activation="softmax", loss="sparse_categorical_crossentropy", optimizer="sgd"):
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [keras.Input((inputs,)), layers.Dense(5, activation="tanh"), layers.Dense(units, activation=activation)]
    )
    model.compile(optimizer, loss)
    return model


def unbuilt(units=4, loss="sparse_categorical_crossentropy", activation="softmax"):
    model = keras.Sequential([layers.Dense(5, activation="tanh"), layers.Dense(units, activation=activation)])
    model.compile("sgd", loss)
    return model


def two_inputs():
    keras.utils.set_random_seed(7)
    left, right = keras.Input((3,), name="left"), keras.Input((2,), name="right")
    joined = layers.Concatenate()([left, right])
    model = keras.Model([left, right], layers.Dense(1, name="sum")(joined))
    model.compile("sgd", "mse")
    return model


def two_outputs():
    keras.utils.set_random_seed(7)
    inputs = keras.Input((3,), name="inputs")
    model = keras.Model(inputs, [layers.Dense(2, name="pair")(inputs), layers.Dense(1, name="single")(inputs)])
    model.compile("sgd", {"pair": "mse", "single": "mse"})
    return model
