from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructField, StructType

from keraunos import KerasEstimator, KerasModel, KerasRegressor
from keraunos.errors import ColumnError, JobError, ModelError
from keraunos.ml.preparation import prepare
from tests.conformance.learner_models import Rebuilding, Squared
from tests.ml.models import mlp

SCHEMA = StructType(
    [
        StructField("x", ArrayType(FloatType())),
        StructField("y", FloatType()),
        StructField("z", FloatType()),
        StructField("kind", IntegerType()),
    ]
)


def prepared(estimator):
    return prepare(estimator, SCHEMA, workers=1, first_row=lambda: {"x": [1.0, 2.0, 3.0]}, check=estimator._check)


def two_heads(loss, metrics=None, *, named=False):
    keras.utils.set_random_seed(7)
    inputs = keras.Input((3,), name="inputs")
    hidden = layers.Dense(4, activation="tanh")(inputs)
    heads = {"score": layers.Dense(1, name="score")(hidden), "code": layers.Dense(2, name="code")(hidden)}
    model = keras.Model(inputs, heads if named else list(heads.values()))
    model.compile(keras.optimizers.SGD(0.1), loss, metrics=metrics)
    return model


def estimator_of(model, **params):
    return KerasEstimator(model=model, featuresCol="x", batchSize=64, numWorkers=1, verbose=0, **params)


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (two_heads(["mse", None]), {"score": "y"}),
        (two_heads(["mse", None]), "y"),
        (two_heads({"score": "mse", "code": None}), {"score": "y"}),
        (two_heads({"score": "mse"}, named=True), {"score": "y"}),
    ],
)
def test_only_outputs_with_a_loss_need_a_label(model, label):
    (slot,) = prepared(estimator_of(model, labelCol=label)).job.columns.labels
    assert (slot.name, slot.columns) == ("score", ("y",))


def test_outputs_with_a_loss_or_metrics_need_a_label():
    model = two_heads(["mse", None], metrics={"code": ["mae"]})
    with pytest.raises(ColumnError, match=r"every output of the model. Expected 'score', 'code'.*without 'code'"):
        prepared(estimator_of(model, labelCol={"score": "y"}))
    assert len(prepared(estimator_of(model, labelCol={"score": "y", "code": ["y", "z"]})).job.columns.labels) == 2
    with pytest.raises(ColumnError, match=r"every output of the model that has a loss.*Expected .score.\. Rec"):
        prepared(estimator_of(two_heads(["mse", None]), labelCol={"code": ["y", "z"]}))
    with pytest.raises(ModelError, match=r"an entry in `loss` for each output.*Received: 'score'. Add the others"):
        prepared(estimator_of(two_heads({"score": "mse"}), labelCol={"score": "y"}))


def test_no_labels_survive_copies_and_setters():
    for estimator in (KerasEstimator(labelCol=None), KerasEstimator().setLabelCol(None)):
        assert estimator.getLabelCol() is None
        assert estimator.copy().getLabelCol() is None
        assert estimator.copy({estimator.labelCol: "y"}).getLabelCol() == "y"
        assert estimator.setParams(epochs=None).getLabelCol() is None
        assert estimator.setParams(labelCol="y").getLabelCol() == "y"
    assert KerasEstimator(featuresCol=None, epochs=None).getLabelCol() == "label"
    assert KerasEstimator(epochs=None).getEpochs() == 1


def adding():
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4), Squared(), layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.1), loss=None)
    return model


def rebuilding():
    keras.utils.set_random_seed(7)
    model = Rebuilding([keras.Input((3,)), layers.Dense(2), layers.Dense(3)])
    model.compile(keras.optimizers.SGD(0.1))
    return model


@pytest.mark.parametrize("model", [adding(), rebuilding()], ids=["add_loss", "compute_loss"])
def test_models_that_need_no_labels(model):
    assert prepared(estimator_of(model, labelCol=None)).job.columns.labels == ()


def test_an_unbuilt_model_that_adds_a_loss():
    model = keras.Sequential([layers.Dense(4), Squared()])
    model.compile("sgd", loss=None)
    assert prepared(estimator_of(model, labelCol=None)).job.columns.labels == ()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            {"model": mlp(units=1, activation=None, loss="mse")},
            ModelError,
            r"needs labels.*Received: .mse.",
        ),
        ({"model": two_heads(["mse", None])}, ModelError, "needs labels"),
        ({"model": adding(), "weightCol": "z"}, JobError, r"`weightCol` weighs rows.*labelCol=None. Received: 'z'"),
        ({"model": adding(), "classWeight": {0: 2.0}}, JobError, r"`classWeight` needs exactly one label.*0 labels"),
    ],
)
def test_what_needs_labels_is_refused(params, error, message):
    with pytest.raises(error, match=message):
        prepared(estimator_of(labelCol=None, **params))


def test_metrics_and_no_loss_at_all_are_refused():
    model = adding()
    model.compile("sgd", loss=None, metrics=["mae"])
    with pytest.raises(ModelError, match=r"metrics, which compare its outputs with labels.*Received: \['mae'\]"):
        prepared(estimator_of(model, labelCol=None))
    plain = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    plain.compile("sgd", loss=None)
    with pytest.raises(ModelError, match=r"no loss that it could learn by without labels.*`add_loss`"):
        prepared(estimator_of(plain, labelCol=None))
    with pytest.raises(ModelError, match="must be compiled with a loss"):
        prepared(KerasRegressor(model=mlp(units=1, loss=None), featuresCol="x", labelCol="y"))


@pytest.fixture(scope="module")
def frame(spark):
    values = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
    rows = [(row.tolist(), float(row.sum()), float(row[0]), int(row.sum() > 0)) for row in values]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1).cache()


def inputs_of(frame):
    return np.array([row.x for row in frame.collect()], dtype="float32")


@pytest.mark.spark
@pytest.mark.slow
def test_a_fit_with_one_loss_for_two_outputs_is_plain_keras(frame):
    model = two_heads(["mse", None])
    fitted = estimator_of(model, labelCol={"score": "y"}, epochs=2).fit(frame)
    inputs = inputs_of(frame)
    history = model.fit(inputs, [inputs.sum(axis=1, keepdims=True), None], batch_size=64, epochs=2, verbose=0).history
    for ours, theirs in zip(fitted.model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(fitted.history["loss"], history["loss"], rtol=1e-4)
    assert {"prediction_score", "prediction_code"} <= set(fitted.transform(frame).columns)


@pytest.mark.spark
@pytest.mark.slow
def test_a_fit_without_labels_is_plain_keras(frame, tmp_path):
    model = rebuilding()
    estimator = estimator_of(model, labelCol=None, epochs=2, validationSplit=0.0)
    estimator.save(str(tmp_path / "estimator"))
    loaded = KerasEstimator.load(str(tmp_path / "estimator"))
    assert loaded.getLabelCol() is None
    fitted = loaded.fit(frame)
    model.fit(inputs_of(frame), batch_size=64, epochs=2, verbose=0)
    for ours, theirs in zip(fitted.model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    fitted.save(str(tmp_path / "fitted"))
    assert KerasModel.load(str(tmp_path / "fitted")).getLabelCol() is None
