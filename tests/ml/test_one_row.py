from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml.linalg import DenseVector, Vectors

from keraunos import KerasClassificationModel, KerasClassifier, KerasModel, KerasRegressionModel
from keraunos.errors import DataError, JobError
from keraunos.ml.heads import Head
from tests.ml.models import mlp, two_inputs, two_outputs

ROWS = np.random.default_rng(3).normal(size=(9, 3)).astype("float32")


def classifier():
    return KerasClassificationModel.of(mlp(), featuresCol="x")


@pytest.mark.parametrize(
    ("probability", "thresholds", "expected"),
    [
        ([0.2, 0.3, 0.5], None, 2),
        ([0.2, 0.3, 0.5], (0.2, 0.5, 1.0), 0),
        ([0.2, 0.3, 0.5], (0.4, 0.6, 1.0), 0),
        ([0.2, 0.3, 0.5], (1.0, 0.0, 1.0), 1),
        ([0.5, 0.0, 0.5], (1.0, 0.0, 1.0), 0),
    ],
)
def test_thresholds_choose_as_in_spark(probability, thresholds, expected):
    assert Head(3, logits=False).chosen(np.array([probability]), thresholds).tolist() == [expected]


@pytest.mark.parametrize("wrong", [[0.5, -1.0], [0.0, 0.0, 1.0], [], "0.5", [float("nan"), 1.0]])
def test_thresholds_that_cannot_be(wrong):
    with pytest.raises(JobError, match=r"`thresholds` must be a list with a number for each class.*Received: "):
        KerasClassifier(thresholds=wrong)


def test_thresholds_have_the_length_of_the_classes():
    with pytest.raises(JobError, match=r"each of the 4 classes of the model. Received: \[0.5, 0.5\]"):
        classifier().setThresholds([0.5, 0.5]).predict(ROWS[0])
    from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructField, StructType

    from tests.ml.untrained import fitted_of

    schema = StructType([StructField("x", ArrayType(FloatType())), StructField("label", IntegerType())])
    with pytest.raises(JobError, match="each of the 4 classes"):
        fitted_of(KerasClassifier(model=mlp(), featuresCol="x", thresholds=[1.0]), schema)
    assert fitted_of(KerasClassifier(model=mlp(), featuresCol="x", thresholds=[1.0] * 4), schema).getThresholds()


def test_the_number_of_features():
    assert classifier().numFeatures == 3
    assert KerasModel.of(two_inputs()).numFeatures == -1
    assert KerasModel.of(keras.Sequential([keras.Input((4, 4, 1)), layers.Flatten()])).numFeatures == -1


def test_rows_of_every_kind():
    fitted, row = classifier(), ROWS[0]
    expected = fitted.model.predict(ROWS[:1], verbose=0)[0]
    for given in (row, row.tolist(), Vectors.dense(row), tuple(map(float, row))):
        probability = fitted.predictProbability(given)
        assert isinstance(probability, DenseVector)
        np.testing.assert_allclose(probability.toArray(), expected, rtol=1e-5)
        assert fitted.predict(given) == float(expected.argmax())
    sparse = fitted.predictProbability(Vectors.sparse(3, [1], [2.0])).toArray()
    np.testing.assert_allclose(sparse, fitted.model.predict(np.array([[0.0, 2, 0]]), verbose=0)[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, 2.0], r"does not fit the model's input.*Expected the shape \(3,\). Received: \(2,\)"),
        (["a", "b", "c"], "a vector, a list or an array of numbers. Received: "),
        (None, "numbers. Received: None"),
        ([[1.0], [2.0, 3.0]], "numbers. Received: "),
        ([1.0, float("nan"), 3.0], "must be finite: `transform` gives .* no prediction.*`allowNaN`"),
        ([1.0, 1e300, 3.0], "must be finite"),
    ],
)
def test_rows_that_no_model_takes(row, message):
    with pytest.raises(DataError, match=message):
        classifier().predict(row)


def test_ids_that_an_embedding_does_not_have():
    embedding = keras.Sequential([keras.Input((2,), dtype="int32"), layers.Embedding(5, 3), layers.Flatten()])
    fitted = KerasModel.of(embedding)
    np.testing.assert_allclose(fitted.predict([1, 4]), embedding.predict(np.array([[1, 4]]), verbose=0)[0], rtol=1e-5)
    with pytest.raises(DataError, match="5"):
        fitted.predict([1, 5])


def test_several_inputs_and_outputs():
    model = two_inputs()
    fitted = KerasRegressionModel.of(model)
    expected = model.predict([np.array([[1.0, 2, 3]]), np.array([[4.0, 5]])], verbose=0)[0, 0]
    assert fitted.predict({"left": [1, 2, 3], "right": np.array([4.0, 5.0])}) == pytest.approx(
        float(expected), rel=1e-5
    )
    with pytest.raises(DataError, match="must be a dict with the inputs 'left', 'right'"):
        fitted.predict([1.0, 2.0])
    with pytest.raises(DataError, match="Expected: 'left', 'right'. Received: 'left'"):
        fitted.predict({"left": [1, 2, 3]})
    both = KerasModel.of(two_outputs()).predict(ROWS[0])
    assert {name: value.shape for name, value in both.items()} == {"pair": (2,), "single": (1,)}


@pytest.mark.spark
def test_one_row_is_what_transform_gives(spark):
    frame = spark.createDataFrame([(row.tolist(),) for row in ROWS], "x array<float>").coalesce(1)
    logits = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    logits.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    for fitted in (
        KerasClassificationModel.of(logits, featuresCol="x"),
        classifier().setThresholds([0.1, 1.0, 0.5, 0.0]),
        classifier().setThresholds([0.2, 1.0, 0.5, 0.7]),
    ):
        for row in fitted.transform(frame).collect():
            assert fitted.predict(row.x) == row.prediction
            np.testing.assert_allclose(fitted.predictRaw(row.x), row.rawPrediction, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(fitted.predictProbability(row.x), row.probability, rtol=1e-5, atol=1e-6)
    plain = KerasModel.of(two_outputs(), featuresCol="x")
    row = plain.transform(frame).first()
    np.testing.assert_allclose(plain.predict(row.x)["pair"], row.prediction_pair, rtol=1e-5, atol=1e-6)
