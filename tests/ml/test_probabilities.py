"""Classifiers whose outputs are no probabilities are told so when they are fitted."""

from __future__ import annotations

import keras
import pytest
from keras import layers
from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructField, StructType

from keraunos import KerasClassifier
from keraunos.ml.preparation import prepare

SCHEMA = StructType([StructField("features", ArrayType(FloatType())), StructField("label", IntegerType())])


def warned(caplog, *ends, loss="sparse_categorical_crossentropy", model=None, custom=None):
    """What is said of a model that ends with these layers."""
    model = model or keras.Sequential([keras.Input((3,)), *ends])
    model.compile("sgd", loss)
    estimator = KerasClassifier(model=model, customObjects=custom or {})
    row = {"features": [1.0, 2.0, 3.0]}
    made = prepare(estimator, SCHEMA, workers=1, first_row=lambda: row, check=estimator._check)
    caplog.clear()
    estimator._warn(made)
    return caplog.messages


LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def test_raw_scores_are_told_with_both_remedies(caplog):
    (told,) = warned(caplog, layers.Dense(4, name="scores"))
    assert "'scores', has the activation 'linear'" in told
    assert "activation='softmax'" in told
    assert "keras.losses.SparseCategoricalCrossentropy(from_logits=True)" in told
    (told,) = warned(caplog, layers.Dense(1, activation="tanh"), loss="binary_crossentropy")
    assert "activation='sigmoid'" in told
    assert "keras.losses.BinaryCrossentropy(from_logits=True)" in told


@pytest.mark.parametrize(
    "ends",
    [
        [layers.Dense(4, activation="softmax")],
        [layers.Dense(4), layers.Softmax()],
        [layers.Dense(4), layers.Activation("softmax")],
        [layers.Dense(4, activation="softmax"), layers.Reshape((4,)), layers.Dropout(0.5)],
        [keras.Sequential([layers.Dense(4), layers.Activation(keras.activations.softmax)])],
    ],
)
def test_probabilities_are_fine_wherever_they_are_made(caplog, ends):
    assert not warned(caplog, *ends)


def test_scores_are_fine_where_the_loss_knows(caplog):
    assert not warned(caplog, layers.Dense(4), loss=LOGITS)
    assert not warned(caplog, layers.Dense(1, activation="sigmoid"), loss="binary_crossentropy")


def test_an_end_that_does_not_tell_is_tried(caplog):
    inputs = keras.Input((3,))
    halves = [layers.Dense(4, activation="softmax")(inputs) for _ in range(2)]
    assert not warned(caplog, model=keras.Model(inputs, layers.Average()(halves)))
    (told,) = warned(caplog, model=keras.Model(inputs, layers.Add(name="both")(halves)))
    assert "'both', gives other numbers" in told


@keras.saving.register_keras_serializable(package="tests")
class Scores(keras.Model):
    def __init__(self, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation
        self.dense = layers.Dense(4, activation=activation)

    def call(self, inputs):
        return self.dense(inputs)

    def get_config(self):
        return {**super().get_config(), "activation": self.activation}


def test_a_subclassed_model_is_tried(caplog):
    custom = {"Scores": Scores}
    assert len(warned(caplog, model=Scores(), custom=custom)) == 1
    assert not warned(caplog, model=Scores("softmax"), custom=custom)
