from __future__ import annotations

import gc

import keras
import numpy as np
import pytest
from keras import layers
from pyspark.ml import Pipeline
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import StringIndexer, VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder, TrainValidationSplit

from keraunos import KerasClassificationModel, KerasClassifier, KerasEstimator, KerasRegressor
from keraunos.errors import ColumnError, DataError, ModelError
from tests.conformance.learner_models import Largest
from tests.ml.models import two_outputs, unbuilt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FEATURES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def frame(spark):
    """Three numbers a row; the kind is which of them is the largest, and `total` is linear in them."""
    values = np.random.default_rng(0).normal(size=(240, 3))
    rows = [(*map(float, row), "xyz"[int(row.argmax())], float(row @ [1.0, -2.0, 0.5])) for row in values]
    return spark.createDataFrame(rows, "a double, b double, c double, kind string, total double").repartition(2).cache()


def classifier_model():
    model = keras.Sequential(
        [keras.Input((3,)), layers.Dense(16, activation="relu"), layers.Dense(3, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def regressor_model():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def test_a_pipeline_with_indexed_labels(frame):
    model = classifier_model()
    before = model.get_weights()
    rate = float(model.optimizer.learning_rate)
    stages = [
        StringIndexer(inputCol="kind", outputCol="label"),
        VectorAssembler(inputCols=FEATURES, outputCol="features"),
        KerasClassifier(model=model, epochs=8, batchSize=16, learningRate=0.03, verbose=0),
    ]
    fitted = Pipeline(stages=stages).fit(frame)
    served = fitted.transform(frame)
    assert MulticlassClassificationEvaluator(metricName="accuracy").evaluate(served) > 0.85
    last = fitted.stages[-1]
    assert isinstance(last, KerasClassificationModel)
    assert last.uid == stages[-1].uid
    assert len(last.history["loss"]) == 8
    assert last.history["loss"][-1] < last.history["loss"][0]
    assert last.history.lost_rows == 0
    assert sum(each.rows for each in last.ranks) == 8 * frame.count()
    found = served.select("features", "probability").limit(5).collect()
    inputs = np.array([row.features.toArray() for row in found], dtype=np.float32)
    np.testing.assert_allclose(
        [row.probability.toArray() for row in found], np.asarray(last.model.predict_on_batch(inputs)), rtol=1e-4
    )
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert float(model.optimizer.learning_rate) == rate
    assert last.model is not model


def test_a_regressor_with_validation(frame):
    regressor = KerasRegressor(
        model=regressor_model(), featuresCol=FEATURES, labelCol="total", epochs=6, batchSize=8, validationSplit=0.25,
        verbose=0,
    )  # fmt: skip
    fitted = regressor.fit(frame)
    assert RegressionEvaluator(labelCol="total", metricName="rmse").evaluate(fitted.transform(frame)) < 0.1
    assert "val_loss" in fitted.history


def test_an_estimator_with_several_outputs(frame):
    estimator = KerasEstimator(
        model=two_outputs(), featuresCol=FEATURES, labelCol={"pair": ["a", "b"], "single": "total"}, epochs=20,
        batchSize=8, learningRate=0.1, verbose=0,
    )  # fmt: skip
    row = estimator.fit(frame).transform(frame).first()
    np.testing.assert_allclose(row.prediction_pair, [row.a, row.b], atol=0.15)
    np.testing.assert_allclose(row.prediction_single, [row.total], atol=0.15)


def test_an_unbuilt_model_is_trained(frame):
    model = unbuilt(units=1, loss="mse", activation=None)
    fitted = KerasRegressor(model=model, featuresCol=FEATURES, labelCol="total", verbose=0).fit(frame)
    assert fitted.model.count_params() == 3 * 5 + 5 + 5 + 1
    assert not model.built


# Spark's validators leave their thread pools to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")
def test_grids_over_our_params(frame):
    regressor = KerasRegressor(model=regressor_model(), featuresCol=FEATURES, labelCol="total", epochs=2, verbose=0)
    grid = (
        ParamGridBuilder()
        .addGrid(regressor.learningRate, [0.00001, 0.05])
        .addGrid(regressor.batchSize, [8])
        .addGrid(regressor.epochs, [3])
        .build()
    )
    evaluator = RegressionEvaluator(labelCol="total", metricName="rmse")
    crossed = CrossValidator(
        estimator=regressor, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, parallelism=2
    )
    best = crossed.fit(frame)
    assert best.avgMetrics[1] < best.avgMetrics[0]
    assert len(best.bestModel.history["loss"]) == 3
    split = TrainValidationSplit(estimator=regressor, estimatorParamMaps=grid, evaluator=evaluator, seed=1).fit(frame)
    assert split.validationMetrics[1] < split.validationMetrics[0]
    gc.collect()


def test_errors_reach_the_user_as_they_are(frame):
    regressor = KerasRegressor(model=regressor_model(), featuresCol=FEATURES, labelCol="total", verbose=0)
    with pytest.raises(ColumnError, match="StringIndexer"):
        regressor.setLabelCol("kind").fit(frame)
    with pytest.raises(DataError, match="no rows"):
        regressor.setLabelCol("total").fit(frame.filter("a > 1000"))


def test_a_metric_that_cannot_be_merged_is_refused_before_any_spark_job(frame, jobs_run):
    # Its input's length is only in the rows, so that a fit begins with a look at the first one.
    arrays = frame.selectExpr("array(a, b, c) as features", "total as label")
    model = unbuilt(units=1, loss="mse", activation=None)
    model.compile("sgd", "mse", metrics=["mae", Largest()])
    with pytest.raises(ModelError, match=r"metric 'largest'.*merge_state"):
        KerasRegressor(model=model, verbose=0).fit(arrays)
    assert list(jobs_run()) == []
    model.compile("sgd", "mse", metrics=["mae"])
    assert KerasRegressor(model=model, verbose=0).fit(arrays).history["mae"]
    assert len(jobs_run()) >= 2
