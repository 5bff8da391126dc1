"""SparkFlow's estimator and model on Spark: what its own tests show, and what they leave out."""

import json

import numpy as np
import pytest
import tensorflow as tf
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as sf

from keraunos.compat.sparkflow.graph_utils import build_adam_config, build_graph, build_rmsprop_config
from keraunos.compat.sparkflow.pipeline_util import PysparkPipelineWrapper
from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel
from keraunos.errors import ClusterError, ColumnError, JobError, ModelError
from tests.compat.sparkflow import models
from tests.extended import extended

pytestmark = pytest.mark.spark

v1 = tf.compat.v1
GAUSSIANS = {"inputCol": "features", "labelCol": "label", "tfLabel": "y:0", "tfOutput": "outer/Sigmoid:0", "iters": 25}


@pytest.fixture(scope="module")
def frame(spark):
    """Two overlapping clouds of ten dimensions."""
    random = np.random.default_rng(1)
    rows = [(float(i % 2), Vectors.dense(random.normal(2 * (i % 2), 1, 10))) for i in range(400)]
    return spark.createDataFrame(rows, ["label", "features"]).repartition(2).cache()


@pytest.fixture(scope="module")
def graph():
    return build_graph(models.gaussians_model)


def accuracy(fitted, frame):
    right = (sf.col(fitted.getPredictionCol()) > 0.5) == (sf.col("label") > 0.5)
    return fitted.transform(frame).select(sf.avg(right.cast("double"))).first()[0]


def predicted(model, frame, column="predicted"):
    return [row[column] for row in model.transform(frame).collect()]


@pytest.mark.parametrize(
    "params",
    [
        extended({"tfOptimizer": "adam", "tfLearningRate": 0.05}),
        {"tfOptimizer": "adam", "tfLearningRate": 0.05, "acquireLock": True},
        extended({"optimizerOptions": build_adam_config(learning_rate=0.05, beta1=0.8), "partitions": 1}),
        {"tfOptimizer": "rmsprop", "optimizerOptions": build_rmsprop_config(learning_rate=0.02), "partitions": 1},
        {"tfLearningRate": 0.05, "miniBatchSize": 30, "miniStochasticIters": 3},
        extended({"tfLearningRate": 0.05, "miniBatchSize": -1, "shufflePerIter": False, "iters": 60}),
    ],
    ids=["hogwild", "lock", "adam's options", "rmsprop's options", "stochastic iterations", "full batch"],
)
def test_overlapping_gaussians_are_told_apart(frame, graph, params):
    fitted = SparkAsyncDL(**{**GAUSSIANS, "tensorflowGraph": graph, **params}).fit(frame)
    assert accuracy(fitted, frame) > 0.97


def test_turns_carry_on_the_weights_and_what_the_optimizer_remembers(frame, capfd):
    """Dual averaging sets the weights from all gradients it remembers: a turn that forgot would start from nothing."""

    def slope():
        x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
        w = v1.get_variable("w", [], initializer=v1.zeros_initializer())
        v1.losses.add_loss(w * tf.reduce_mean(tf.ones_like(x)))

    fitted = {}
    for turns in (1, 3):
        estimator = SparkAsyncDL(
            inputCol="features",
            tensorflowGraph=build_graph(slope),
            tfOptimizer="adagrad_da",
            tfLearningRate=0.5,
            iters=2,
            miniBatchSize=-1,
            partitions=1,
            partitionShuffles=turns,
            verbose=1,
        )
        model = estimator.fit(frame)
        fitted[turns] = json.loads(model.getModelWeights())[0]
    # After t steps with a gradient of 1: -rate t / sqrt(0.1 + t).
    assert fitted[1] == pytest.approx(-0.5 * 2 / np.sqrt(2.1), rel=1e-5)
    assert fitted[3] == pytest.approx(-0.5 * 6 / np.sqrt(6.1), rel=1e-5)
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("Partition Id: 0, Iteration: ")]
    assert [line.split(",")[1] for line in lines] == [" Iteration: 0", " Iteration: 1"] * 4
    assert lines[0].endswith("Loss: 0.000000")
    with pytest.raises(ModelError, match=r"`tfOutput` must name a tensor of the graph. Received: 'out/Sigmoid:0'"):
        model.transform(frame)


def test_every_turn_deals_the_rows_out_anew_and_loses_none(frame, graph):
    params = {**GAUSSIANS, "tensorflowGraph": graph, "tfLearningRate": 0.05, "iters": 12, "partitionShuffles": 2}
    assert accuracy(SparkAsyncDL(**params).fit(frame), frame) > 0.97


def test_an_autoencoder_learns_without_labels(frame):
    fitted = SparkAsyncDL(
        inputCol="features",
        tensorflowGraph=build_graph(models.autoencoder),
        tfOutput="out:0",
        tfLearningRate=0.02,
        iters=40,
        predictionCol="rebuilt",
    ).fit(frame)
    rows = fitted.transform(frame).collect()
    given, rebuilt = (np.array([row[name].toArray() for row in rows]) for name in ("features", "rebuilt"))
    # Told from the mean of all rows.
    assert np.mean((given - rebuilt) ** 2) < 0.6 * np.mean((given - given.mean(axis=0)) ** 2)


def test_sparse_vectors(spark, graph):
    rows = [(float(i % 2), Vectors.sparse(10, [i % 2, 5], [1.0, 3.0])) for i in range(40)]
    frame = spark.createDataFrame(rows, ["label", "features"]).coalesce(1)
    params = {**GAUSSIANS, "tensorflowGraph": graph, "tfLearningRate": 0.1}
    assert accuracy(SparkAsyncDL(**params).fit(frame), frame) == 1.0


def test_a_model_without_the_losses_collection(frame):
    graph = build_graph(models.without_collection)
    params = {**GAUSSIANS, "tensorflowGraph": graph, "tfOutput": "out:0", "tfLearningRate": 0.1, "partitions": 1}
    assert accuracy(SparkAsyncDL(**params).fit(frame), frame) > 0.97


def test_the_port_is_the_one_that_was_asked_for(frame, graph, free_port, busy_port):
    params = {**GAUSSIANS, "tensorflowGraph": graph, "iters": 5, "tfLearningRate": 0.1, "partitions": 1}
    assert SparkAsyncDL(**params, port=free_port).fit(frame).getInputCol() == "features"
    with pytest.raises(ClusterError, match=str(busy_port)):
        SparkAsyncDL(**params, port=busy_port).fit(frame)


@pytest.mark.parametrize("keep", [False, extended(True)])
def test_nothing_drops_out_of_a_prediction(frame, keep):
    """What drops out scales up the rest, so that only without dropout the sum of the features comes out."""
    params = {"tfDropout": "drop:0", "toKeepDropout": keep, "tfLabel": "y:0", "tfOutput": "out:0", "partitions": 1}
    fitted = SparkAsyncDL(
        inputCol="features",
        labelCol="label",
        tensorflowGraph=build_graph(models.dropout_model(keep)),
        tfOptimizer="gradient_descent",
        tfLearningRate=1e-12,
        iters=1,
        **params,
    ).fit(frame)
    rows = fitted.transform(frame).collect()
    np.testing.assert_allclose(
        [row.predicted for row in rows], [row.features.toArray().sum() for row in rows], rtol=1e-4
    )
    other_sense = fitted.copy({fitted.toKeepDropout: not keep})
    assert not np.allclose(predicted(other_sense, frame), [row.features.toArray().sum() for row in rows])


def test_dropout_happens_in_training(frame, capfd):
    def build():
        x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
        rate = v1.placeholder_with_default(0.5, shape=[], name="drop")
        w = v1.get_variable("w", [], initializer=v1.ones_initializer())
        dropped = tf.reduce_mean(tf.cast(tf.equal(tf.nn.dropout(tf.ones_like(x), rate=rate), 0.0), tf.float32))
        v1.losses.add_loss(dropped + 0.0 * w)
        tf.identity(x * w, name="out")

    params = {"inputCol": "features", "tfOutput": "out:0", "tfDropout": "drop:0", "iters": 1, "partitions": 1}
    SparkAsyncDL(tensorflowGraph=build_graph(build), miniBatchSize=-1, verbose=1, **params).fit(frame)
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("Partition Id")]
    assert float(line.split()[-1]) == pytest.approx(0.5, abs=0.1)


def test_batch_statistics_are_kept_for_predictions(spark):
    random = np.random.default_rng(3)
    rows = [(float(i % 2), Vectors.dense(random.normal(100 + 10 * (i % 2), 3, 10))) for i in range(200)]
    frame = spark.createDataFrame(rows, ["label", "features"]).coalesce(1)
    graph = build_graph(models.batch_norm_model)
    params = {**GAUSSIANS, "tensorflowGraph": graph, "tfLearningRate": 0.1, "miniBatchSize": 50}
    fitted = SparkAsyncDL(**params, tfDropout="training:0").fit(frame)
    assert accuracy(fitted, frame) > 0.97
    # One row alone has no statistics of its own.
    assert predicted(fitted, frame.limit(1)) == pytest.approx(predicted(fitted, frame)[:1], abs=1e-5)


def test_the_schema_and_all_columns_stay(frame, graph):
    model = SparkAsyncDLModel(
        modelJson=graph,
        modelWeights=json.dumps([np.zeros(shape).tolist() for shape in ((10, 12), 12, (12, 7), 7, (7, 1), 1)]),
        inputCol="features",
        tfInput="x:0",
        tfOutput="outer/Sigmoid:0",
    )
    served = model.transform(frame.withColumn("text", sf.lit("a")))
    assert [(field.name, field.dataType.simpleString()) for field in served.schema.fields] == [
        ("label", "double"), ("features", "vector"), ("text", "string"), ("predicted", "double"),
    ]  # fmt: skip
    assert set(predicted(model, frame)) == {0.5}
    vectors = model.copy({model.tfOutput: "dense/Relu:0"}).transform(frame)
    assert vectors.schema["predicted"].dataType.simpleString() == "vector"
    assert vectors.first().predicted == Vectors.dense(np.zeros(12))


def test_an_estimator_and_a_model_come_back_as_they_were(frame, graph, tmp_path):
    estimator = SparkAsyncDL(**{**GAUSSIANS, "tensorflowGraph": graph, "tfLearningRate": 0.05, "iters": 3})
    Pipeline(stages=[estimator]).write().overwrite().save(str(tmp_path / "estimator"))
    (loaded,) = PysparkPipelineWrapper.unwrap(Pipeline.load(str(tmp_path / "estimator"))).getStages()
    assert loaded.extractParamMap() == estimator.extractParamMap()
    fitted = loaded.fit(frame)
    fitted.save(str(tmp_path / "model"))
    again = SparkAsyncDLModel.load(str(tmp_path / "model"))
    assert predicted(again, frame) == predicted(fitted, frame)
    assert again.getModelJson() == graph
    assert again.getModelWeights() == fitted.getModelWeights()
    rebuilt = SparkAsyncDLModel(
        inputCol="features",
        modelJson=fitted.getOrDefault(fitted.modelJson),
        modelWeights=fitted.getOrDefault(fitted.modelWeights),
        tfInput="x:0",
        tfOutput="outer/Sigmoid:0",
    )
    assert predicted(rebuilt, frame) == predicted(fitted, frame)


def test_a_million_parameters_take_little_more_than_their_bytes(spark, tmp_path):
    def million():
        x = v1.placeholder(tf.float32, shape=[None, 1000], name="x")
        out = models.dense(x, 1000, tf.nn.relu, name="out")
        return v1.losses.mean_squared_error(x, out)

    weights = [np.zeros((1000, 1000), np.float32).tolist(), np.zeros(1000).tolist()]
    model = SparkAsyncDLModel(
        modelJson=build_graph(million), modelWeights=json.dumps(weights), tfInput="x:0", tfOutput="out/Relu:0"
    )
    PipelineModel([model]).write().overwrite().save(str(tmp_path / "pipeline"))
    stored = sum(path.stat().st_size for path in (tmp_path / "pipeline").rglob("*") if path.is_file())
    assert stored <= 1.1 * 4 * 1_001_000


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"tfLabel": None}, JobError, r"`labelCol` and `tfLabel` must be set together"),
        ({"tensorflowGraph": ""}, ModelError, r"`tensorflowGraph` must be set"),
        ({"tfInput": "z:0"}, ModelError, r"`tfInput` must name a tensor"),
        ({"tfOutput": "out:0"}, ModelError, r"`tfOutput` must name a tensor of the graph. Received: 'out:0'"),
        ({"tfDropout": "drop:0"}, ModelError, r"`tfDropout` must name a tensor"),
        ({"inputCol": "feature"}, ColumnError, r"`inputCol` names a column .* Did you mean 'features'"),
        ({"inputCol": "label"}, ColumnError, r"`inputCol` does not fit `tfInput`. Expected rows of 10 elements"),
    ],
)
def test_what_is_wrong_is_told_on_the_driver(frame, graph, jobs_run, params, error, message):
    with pytest.raises(error, match=message):
        SparkAsyncDL(**{**GAUSSIANS, "tensorflowGraph": graph, **params}).fit(frame)
    assert not jobs_run()


def test_a_placeholder_that_nothing_feeds(frame, jobs_run):
    def build(name):
        def function():
            x = v1.placeholder(tf.float32, shape=[None, 10], name="x")
            keep = v1.placeholder(tf.float32, name="keep")
            return tf.reduce_mean(models.dense(x, 1, name="out") * keep)

        return SparkAsyncDL(
            tensorflowGraph=build_graph(function), inputCol="features", tfOutput="out/add:0", tfDropout=name
        )

    with pytest.raises(ModelError, match=r"`tfDropout` must .*'keep:0'.* tf.placeholder_with_default"):
        build("keep:0").fit(frame)
    with pytest.raises(ModelError, match=r"The loss needs 'keep:0', which nothing feeds"):
        build(None).fit(frame)
    assert not jobs_run()
