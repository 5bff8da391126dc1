"""Searches on Spark, as tasks and distributed, with SparkFlow's estimator and with Keras's."""

import keras
import numpy as np
import pytest
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import ParamGridBuilder

from keraunos import KerasClassifier
from keraunos.compat.sparkflow.graph_utils import build_graph
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel
from keraunos.errors import JobError
from keraunos.tuning.search import search
from tests.compat.sparkflow import models

pytestmark = pytest.mark.spark


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


def test_a_trial_that_fails_ends_alone_and_a_mistake_ends_the_search(frame, estimator):
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
