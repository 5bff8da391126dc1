"""Searches on Spark, as tasks and distributed, with SparkFlow's estimator and with Keras's."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import ParamGridBuilder

from keraunos import KerasClassifier
from keraunos.compat.sparkflow.graph_utils import build_graph
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel
from keraunos.errors import JobError, WorkerError
from keraunos.tuning.search import search
from tests.compat.sparkflow import models

pytestmark = pytest.mark.spark

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def frame(spark):
    random = np.random.default_rng(1)
    rows = [(float(i % 2), Vectors.dense(random.normal(2 * (i % 2), 1, 10))) for i in range(200)]
    return spark.createDataFrame(rows, ["label", "features"]).repartition(2).cache()


@pytest.fixture(scope="module")
def estimator():
    return SparkAsyncDL(
        inputCol="features",
        labelCol="label",
        tensorflowGraph=build_graph(models.gaussians_model),
        tfLabel="y:0",
        tfOutput="outer/Sigmoid:0",
        iters=15,
    )


@pytest.mark.parametrize("mode", ["auto", "distributed"])
def test_the_learning_rate_that_learns_wins(frame, estimator, mode):
    heard = []
    found = search(estimator, {"tfLearningRate": [1e-9, 0.05]}, frame, mode=mode, on_trial=heard.append)
    assert found.mode == {"auto": "tasks"}.get(mode, mode)
    assert found.metric == "val_loss"
    assert found.best.params == {"tfLearningRate": 0.05}
    assert [trial.params["tfLearningRate"] for trial in found.trials] == [1e-9, 0.05]
    assert found.best.metric == min(trial.metric for trial in heard)
    assert found.best.metric < 0.1 < found.trials[0].metric
    assert isinstance(found.best_model, SparkAsyncDLModel)
    evaluator = RegressionEvaluator(predictionCol="predicted", metricName="mse")
    assert evaluator.evaluate(found.best_model.transform(frame)) < 0.1
    assert list(found.to_pandas()["tfLearningRate"]) == [1e-9, 0.05]


def test_rows_that_do_not_fit_a_worker_are_trained_on_distributed(frame, estimator):
    evaluator = RegressionEvaluator(predictionCol="predicted", metricName="mse")
    grid = ParamGridBuilder().addGrid(estimator.tfOptimizer, ["adam"]).addGrid(estimator.iters, [2]).build()
    found = search(estimator, grid, frame, evaluator=evaluator, max_bytes=100)
    assert (found.mode, found.metric, len(found.trials)) == ("distributed", "mse", 1)
    assert found.best.params == {"tfOptimizer": "adam", "iters": 2}


def test_a_keras_model_is_searched_the_same_way(frame):
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    classifier = KerasClassifier(model=model, epochs=4, batchSize=16, verbose=0)
    evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
    found = search(classifier, {"learningRate": [1e-8, 0.1]}, frame, evaluator=evaluator)
    assert found.mode == "tasks"
    assert found.best.params == {"learningRate": 0.1}
    assert found.best.metric > 0.9


def test_an_estimator_of_sparks_own_is_fitted_as_it_is(frame):
    evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
    found = search(LogisticRegression(maxIter=3), {"regParam": [0.0, 10.0]}, frame, evaluator=evaluator)
    assert found.mode == "distributed"
    assert found.best.metric > 0.9


def test_a_trial_that_fails_ends_alone(frame):
    def at_most_fifty_rows():
        x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
        with tf.control_dependencies([v1.Assert(tf.shape(x)[0] <= 50, ["too many rows"])]):
            out = models.dense(tf.identity(x), 10, name="out")
        return v1.losses.mean_squared_error(x, out)

    estimator = SparkAsyncDL(
        inputCol="features", tensorflowGraph=build_graph(at_most_fifty_rows), tfOutput="out/add:0", iters=2
    )
    found = search(estimator, {"miniBatchSize": [100, 20]}, frame)
    assert found.best.params == {"miniBatchSize": 20}
    failed, _ = found.trials
    assert "too many rows" in failed.error
    assert np.isnan(failed.metric)
    with pytest.raises(WorkerError, match=r"No trial of the search ended well.*too many rows"):
        search(estimator, {"miniBatchSize": [100]}, frame)


def test_a_mistake_ends_the_search_before_it_begins(frame, estimator):
    with pytest.raises(JobError, match=r"`space` must be one of .*Received: 'learningRate'"):
        search(estimator, {"learningRate": [1]}, frame)
    with pytest.raises(JobError, match="`tfOptimizer` must be one of"):
        search(estimator, {"tfOptimizer": ["adamw"]}, frame)
    with pytest.raises(JobError, match="`evaluator` must be given"):
        search(LogisticRegression(), {"maxIter": [1]}, frame)
    with pytest.raises(JobError, match="mode='tasks' needs an estimator of Keraunos"):
        search(LogisticRegression(), {"maxIter": [1]}, frame, evaluator=RegressionEvaluator(), mode="tasks")
    with pytest.raises(JobError, match="`validation` must be a fraction"):
        search(estimator, {"iters": [1]}, frame, validation=2)
    with pytest.raises(JobError, match="`mode` must be one of"):
        search(estimator, {"iters": [1]}, frame, mode="local")
