"""Shared by the examples: handwritten digits, the network of Elephas's MNIST examples, a local Spark."""

from keraunos.data.digits import load_digits

import keras
import numpy as np
from pyspark.sql import SparkSession

CLASSES = 10


def local_spark():
    """A Spark with two slots on this machine."""
    return SparkSession.builder.master("local[2]").appName("elephas").getOrCreate()


def digits():
    """Returns features and one-hot labels for training, and for testing."""
    data = load_digits()
    x = (data.data / 16).astype("float32")
    y = np.eye(CLASSES, dtype="float32")[data.target]
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:1500], order[1500:]
    return x[train], y[train], x[test], y[test]


def perceptron():
    """Two hidden layers of 128 with dropout."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((64,))])
    for _ in range(2):
        model.add(keras.layers.Dense(128, activation="relu"))
        model.add(keras.layers.Dropout(0.2))
    model.add(keras.layers.Dense(CLASSES, activation="softmax"))
    model.compile(keras.optimizers.SGD(learning_rate=0.1), "categorical_crossentropy", metrics=["accuracy"])
    return model
