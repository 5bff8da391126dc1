from __future__ import annotations

import random

import keras
import numpy as np
from keras import layers
from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructField, StructType

from keraunos import KerasClassifier
from keraunos.ml.preparation import prepare
from tests.ml.models import mlp, unbuilt

SCHEMA = StructType([StructField("features", ArrayType(FloatType())), StructField("label", IntegerType())])


def start(estimator):
    """The weights that a fit begins with."""
    row = {"features": [1.0, 2.0, 3.0]}
    return prepare(estimator, SCHEMA, workers=1, first_row=lambda: row, check=estimator._check).model.get_weights()


def equal(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_an_unbuilt_model_starts_from_the_seed():
    model = unbuilt()
    first = start(KerasClassifier(model=model, seed=3))
    assert equal(first, start(KerasClassifier(model=model, seed=3)))
    # A second model of the same layers is the same model.
    assert equal(first, start(KerasClassifier(model=unbuilt(), seed=3)))
    assert not equal(first, start(KerasClassifier(model=model, seed=4)))
    assert not equal(first, start(KerasClassifier(model=model, seed=-3)))


def test_layers_of_one_shape_start_differently():
    model = keras.Sequential([layers.Dense(3), layers.Dense(3), layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    first, _, second, *_ = start(KerasClassifier(model=model))
    assert not np.array_equal(first, second)


def test_the_points_of_a_grid_start_alike():
    estimator = KerasClassifier(model=unbuilt(), seed=5)
    points = [estimator.copy({estimator.learningRate: rate}) for rate in (0.1, 0.2)]
    assert equal(start(points[0]), start(points[1]))


@keras.saving.register_keras_serializable(package="tests")
class FromGlobalState(keras.initializers.Initializer):
    """Draws as code of users does: from numpy and from Keras without a seed."""

    def __call__(self, shape, dtype=None):
        drawn = np.random.normal(size=shape).astype("float32")  # noqa: NPY002 - what is tested
        return drawn + keras.random.normal(shape)


def test_initializers_that_draw_from_global_state_start_from_the_seed_too():
    model = keras.Sequential([layers.Dense(4, kernel_initializer=FromGlobalState(), activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    custom = {"FromGlobalState": FromGlobalState}
    first = start(KerasClassifier(model=model, seed=3, customObjects=custom))
    assert equal(first, start(KerasClassifier(model=model, seed=3, customObjects=custom)))
    assert not equal(first, start(KerasClassifier(model=model, seed=4, customObjects=custom)))


def test_the_users_random_numbers_do_not_move():
    def drawn(between):
        keras.utils.set_random_seed(11)
        keras.random.normal((2,))
        between()
        ours = [random.random(), *np.random.normal(size=2)]  # noqa: NPY002 - what a user draws from
        return [*ours, *np.asarray(keras.random.normal((2,)))]

    estimator = KerasClassifier(model=unbuilt(), seed=3)
    assert drawn(lambda: None) == drawn(lambda: start(estimator))


def test_a_built_model_starts_from_its_own_weights():
    model = mlp()
    assert equal(model.get_weights(), start(KerasClassifier(model=model, seed=9)))
