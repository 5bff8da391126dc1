"""Searches on Spark, as tasks and distributed, with SparkFlow's estimator and with Keras's."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import StandardScaler
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import ParamGridBuilder

from keraunos import KerasClassifier
from keraunos.compat.sparkflow.graph_utils import build_graph
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel
from keraunos.errors import JobError, WorkerError
from keraunos.tuning.search import search
from keraunos.tuning.space import LogUniform, Uniform
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


@pytest.mark.extended
def test_values_that_follow_from_earlier_trials(frame):
    """Twelve trials, of which two know the first ten: they keep to what did well, and a second search is the same."""
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    classifier = KerasClassifier(model=model, epochs=2, batchSize=16, verbose=0, seed=1)
    space = {"learningRate": LogUniform(1e-8, 0.1), classifier.batchSize: [16, 32]}
    found, again = (search(classifier, space, frame, sampler="tpe", trials=12, seed=4) for _ in range(2))
    assert [each.params for each in found.trials] == [each.params for each in again.trials]
    assert set(found.trials[0].params) == {"learningRate", "batchSize"}
    assert found.best.metric == min(each.metric for each in found.trials)
    known = sorted(found.trials[:10], key=lambda each: each.metric)
    assert min(each.params["learningRate"] for each in found.trials[11:]) > known[-1].params["learningRate"]


def test_a_pipeline_is_searched_by_the_names_of_its_stages_params(frame):
    pipeline = Pipeline(stages=[StandardScaler(inputCol="features", outputCol="scaled"), LogisticRegression()])
    evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
    space = {"maxIter": [0, 20], "withMean": [True, False], "regParam": Uniform(0.0, 0.1)}
    found = search(pipeline, space, frame, evaluator=evaluator, sampler="tpe", trials=3)
    assert (found.mode, len(found.trials)) == ("distributed", 3)
    assert set(found.best.params) == {"maxIter", "withMean", "regParam"}
    assert found.best.metric == max(each.metric for each in found.trials)
    assert isinstance(found.best_model, PipelineModel)
    two = Pipeline(stages=[LogisticRegression(), LogisticRegression()])
    with pytest.raises(JobError, match=r"`space` must name one Param, and 2 stages .*'featuresCol'"):
        search(two, {"featuresCol": ["features"]}, frame, evaluator=evaluator)
    with pytest.raises(JobError, match="`space` must be one of .*Received: 'maxIters'"):
        search(pipeline, {"maxIters": [1]}, frame, evaluator=evaluator)


def test_an_adaptive_search_refuses_a_mistake_before_it_begins(frame, estimator):
    with pytest.raises(JobError, match="`sampler` must be one of"):
        search(estimator, {"iters": [1]}, frame, sampler="bayes")
    with pytest.raises(JobError, match="`tfOptimizer` must be one of"):
        search(estimator, {"iters": [1], "tfOptimizer": ["adam", "adamw"]}, frame, sampler="tpe", trials=2)
