from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers

from keraunos import KerasClassificationModel, KerasClassifier, KerasModel, KerasRegressionModel
from keraunos.errors import ColumnError, DataError, ModelError
from tests.conformance.learner_models import Largest, Squared
from tests.ml.models import mlp
from tests.ml.untrained import fitted_of

pytestmark = pytest.mark.spark

RNG = np.random.default_rng(4)
ROWS = RNG.normal(size=(61, 3)).astype("float32")
KINDS = RNG.integers(0, 3, 61)
FLAGS = (ROWS.sum(axis=1) + RNG.normal(size=61) > 0).astype("int32")
WEIGHTS = RNG.uniform(0.1, 3, 61).astype("float32")


@pytest.fixture(scope="module")
def frame(spark):
    rows = [
        (i, ROWS[i].tolist(), int(KINDS[i]), int(FLAGS[i]), float(ROWS[i].sum()), float(WEIGHTS[i])) for i in range(61)
    ]
    return spark.createDataFrame(rows, "i int, x array<float>, label int, flag int, total float, w float").cache()


def parts(frame, count):
    """The rows in one partition, or in several of very uneven sizes, one of which is empty."""
    if count == 1:
        return frame.coalesce(1)
    rows = frame.rdd.keyBy(lambda row: row.i)
    return rows.partitionBy(4, lambda i: 0 if i < 40 else 1 if i < 43 else 3).values().toDF(frame.schema)


def binary():
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((3,)), layers.Dense(4, activation="tanh", kernel_regularizer="l2"), layers.Dense(1, "sigmoid")]
    )
    model.compile(
        "adam", "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc")], weighted_metrics=["mse"]
    )
    return model


def check(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=2e-5, abs=1e-6), name


@pytest.mark.parametrize("count", [1, 4])
def test_measures_are_those_of_plain_keras(frame, count):
    rows = parts(frame, count)
    model = mlp(units=3)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    fitted = KerasClassificationModel.of(model, featuresCol="x", inferenceBatchSize=16)
    check(fitted.evaluate(rows), model.evaluate(ROWS, KINDS, verbose=0, return_dict=True))
    plain = binary()
    params = {"featuresCol": "x", "labelCol": "flag", "inferenceBatchSize": 16}
    weighted = KerasClassificationModel.of(plain, weightCol="w", **params)
    expected = plain.evaluate(ROWS, FLAGS, sample_weight=WEIGHTS, verbose=0, return_dict=True)
    assert set(expected) == {"loss", "accuracy", "auc", "mse"}
    check(weighted.evaluate(rows), expected)
    unweighted = KerasClassificationModel.of(plain, **params)
    check(unweighted.evaluate(rows), plain.evaluate(ROWS, FLAGS, verbose=0, return_dict=True))


def test_several_outputs_and_one_job(frame, jobs_run):
    inputs = keras.Input((3,))
    model = keras.Model(
        inputs, [layers.Dense(1, name="total")(inputs), layers.Dense(3, "softmax", name="kind")(inputs)]
    )
    model.compile("sgd", ["mse", "sparse_categorical_crossentropy"], metrics=[["mae"], ["accuracy"]])
    fitted = KerasModel.of(model, featuresCol="x", labelCol={"total": "total", "kind": "label"})
    expected = model.evaluate(ROWS, [ROWS.sum(axis=1), KINDS], batch_size=61, verbose=0, return_dict=True)
    frame.count()
    before = len(jobs_run())
    check(fitted.evaluate(frame), expected)
    assert len(jobs_run()) == before + 1


def test_a_model_without_labels(frame):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2), Squared()])
    model.compile("sgd", loss=None)
    fitted = KerasModel.of(model, featuresCol="x", labelCol=None)
    check(fitted.evaluate(frame), model.evaluate(ROWS, batch_size=61, verbose=0, return_dict=True))


def test_labels_and_weights_come_from_the_estimator(frame, tmp_path):
    model = mlp(units=3)
    model.compile("sgd", "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    estimator = KerasClassifier(model=model, featuresCol="x", labelCol="flag", weightCol="w")
    fitted = fitted_of(estimator, frame.schema)
    fitted.save(str(tmp_path / "model"))
    expected = model.evaluate(ROWS, FLAGS, sample_weight=WEIGHTS, verbose=0, return_dict=True)
    check(KerasClassificationModel.load(str(tmp_path / "model")).evaluate(frame), expected)


def test_what_a_fit_refuses_is_refused(frame):
    def of(model, **params):
        return KerasRegressionModel.of(model, **{"featuresCol": "x", "labelCol": "total", **params})

    model = mlp(units=1, activation=None, loss="mse")
    with pytest.raises(DataError, match=r"Column 'x' holds a null.*in row 0"):
        of(model).evaluate(frame.selectExpr("if(i = 0, null, x) as x", "total").coalesce(1))
    with pytest.raises(DataError, match="Column 'total' holds NaN"):
        of(model).evaluate(frame.selectExpr("x", "if(i = 7, float('nan'), total) as total"))
    with pytest.raises(DataError, match=r"label that is out of range.*Received: 9"):
        KerasClassificationModel.of(mlp(units=3), featuresCol="x").evaluate(frame.selectExpr("x", "9 as label"))
    with pytest.raises(DataError, match="no rows to evaluate"):
        of(model).evaluate(frame.filter("i < 0"))
    with pytest.raises(ColumnError, match="`labelCol` names a column that the DataFrame does not have"):
        of(model, labelCol="gone").evaluate(frame)
    with pytest.raises(ColumnError, match="`weightCol` must name a column of numbers"):
        of(model, weightCol="x").evaluate(frame)
    plain = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    with pytest.raises(ModelError, match=r"must be compiled to be evaluated.*before `of`"):
        of(plain).evaluate(frame)
    with pytest.raises(ModelError, match=r"needs labels.*Received: 'mse'"):
        of(model, labelCol=None).evaluate(frame)
    plain.compile("sgd", loss=None)
    with pytest.raises(ModelError, match="no loss that it could learn by without labels"):
        of(plain, labelCol=None).evaluate(frame)
    model.compile("sgd", "mse", metrics=[Largest()])
    with pytest.raises(ModelError, match=r"metric 'largest'.*merge_state"):
        of(model).evaluate(frame)
