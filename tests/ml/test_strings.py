"""Columns of strings and the models that take them: what the driver makes of a schema, without Spark."""

import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from keraunos import KerasClassifier, KerasEstimator
from keraunos.errors import ColumnError, ModelError
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.ml.preparation import prepare
from tests.conformance import text_models as models


def prepared(estimator, row=None, **columns):
    fields = {"text": StringType(), "label": LongType(), **columns}
    schema = StructType([StructField(name, kind) for name, kind in fields.items()])
    return prepare(estimator, schema, workers=2, first_row=lambda: row, check=estimator._check)


def test_a_column_of_strings_becomes_an_input_of_strings():
    found = prepared(KerasClassifier(model=models.classifier((1,)), featuresCol="text"))
    (slot,) = found.job.columns.features
    assert (slot.kind, slot.shape, slot.columns) == ("bytes", (1,), ("text",))
    assert found.signature.inputs[0].dtype == "string"
    binary = prepared(KerasClassifier(model=models.classifier(), featuresCol="text"), text=BinaryType())
    assert binary.job.columns.features[0].kind == "bytes"


def test_an_unbuilt_model_is_built_for_strings_and_keeps_what_was_adapted():
    found = prepared(KerasClassifier(model=models.unbuilt(), featuresCol="text"))
    assert [port.shape for port in found.signature.inputs] == [()]
    assert found.signature.outputs[0].shape == (2,)
    trained = from_archive(found.job.model.archive)
    assert trained.layers[0].get_vocabulary() == models.vectorizer().get_vocabulary()


@pytest.mark.parametrize("mode", ["int", "multi_hot", "tf_idf"])
def test_an_unbuilt_model_may_count_or_weigh_words(mode):
    options = {} if mode == "int" else {"output_sequence_length": None, "output_mode": mode}
    vectorizer = models.vectorizer(**options)
    model = models.compiled(keras.Sequential([vectorizer, layers.Dense(2, "softmax")]))
    found = prepared(KerasClassifier(model=model, featuresCol="text"))
    lines = np.array(["good good bad", "other"])
    layer = from_archive(found.job.model.archive).layers[0]
    np.testing.assert_allclose(np.asarray(layer(lines)), np.asarray(vectorizer(lines)), rtol=1e-6)


def test_an_unbuilt_model_that_hashes_strings():
    model = keras.Sequential([layers.Hashing(9), layers.Embedding(9, 2), layers.Flatten(), layers.Dense(2, "softmax")])
    found = prepared(KerasClassifier(model=models.compiled(model), featuresCol="text"))
    assert found.signature.inputs[0].dtype == "string"


def test_arrays_of_strings_have_the_length_of_the_first_row():
    lookup = layers.StringLookup(vocabulary=["a", "b"])
    model = keras.Sequential([lookup, layers.Embedding(3, 2), layers.Flatten(), layers.Dense(2, "softmax")])
    estimator = KerasClassifier(model=models.compiled(model), featuresCol="tags")
    found = prepared(estimator, row={"tags": ["a", "b", "b"]}, tags=ArrayType(StringType()))
    assert found.job.columns.features[0].shape == (3,)


def test_the_outputs_are_as_they_come_whatever_a_layer_says():
    # Keras says (1, words) of this layer for an input of shape (1,), and gives (words,).
    counts = models.vectorizer(output_sequence_length=None, output_mode="multi_hot")
    inputs = keras.Input((1,), dtype="string")
    model = models.compiled(keras.Model(inputs, layers.Dense(2, activation="softmax")(counts(inputs))))
    assert prepared(KerasClassifier(model=model, featuresCol="text")).signature.outputs[0].shape == (2,)
    assert model.layers[1].output is not None  # the user's own layers were called once, as before


def test_a_feature_space_takes_a_column_per_feature():
    model = models.feature_space(models.passenger_rows())
    columns = {name: name for name in ("age", "city", "deck")}
    estimator = KerasClassifier(model=model, featuresCol=columns, labelCol="y")
    found = prepared(estimator, age=FloatType(), city=StringType(), deck=LongType(), y=LongType())
    kinds = {slot.name: slot.kind for slot in found.job.columns.features}
    assert kinds == {"age": "number", "city": "bytes", "deck": "number"}


def numbers():
    return models.compiled(keras.Sequential([layers.Dense(2, "softmax")]))


@pytest.mark.parametrize(
    ("model", "columns", "error", "message"),
    [
        (models.classifier, {"text": DoubleType()}, ColumnError, "which takes strings.*of numbers.*cast\\('string'\\)"),
        (numbers, {}, ColumnError, "'text', which holds strings, but the model .* has no layer.*StringIndexer"),
        (
            lambda: models.compiled(models.Subclassed()),
            {},
            ModelError,
            "strings of column 'text'.*Subclassed, a class of its own",
        ),
        (
            lambda: models.classifier(vectorize=models.vectorizer(name="open", output_sequence_length=None)),
            {},
            ModelError,
            "'open' gives rows of any length.*Set `output_sequence_length`",
        ),
        (
            lambda: models.compiled(
                keras.Sequential([layers.TextVectorization(name="raw", output_sequence_length=4), layers.Dense(2)])
            ),
            {},
            ModelError,
            "The layer 'raw' has no vocabulary",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_a_task_runs(model, columns, error, message):
    with pytest.raises(error, match=message):
        prepared(KerasEstimator(model=model(), featuresCol="text"), **columns)


def test_labels_of_strings_are_still_refused():
    with pytest.raises(ColumnError, match="`labelCol` names column 'label'.*StringIndexer"):
        prepared(KerasClassifier(model=models.classifier(), featuresCol="text"), label=StringType())


WITHOUT = """
import sys
sys.modules["tensorflow"] = None
from pathlib import Path
from keraunos.learners.keras_archive import from_archive
from_archive(Path(sys.argv[1]).read_bytes())
"""


def test_where_tensorflow_is_missing_the_error_says_what_to_install(tmp_path):
    (tmp_path / "model.keras").write_bytes(to_archive(models.classifier()))
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "model.keras")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install 'keraunos[tensorflow]'" in done.stderr
