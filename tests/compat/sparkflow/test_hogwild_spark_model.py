"""SparkFlow's HogwildSparkModel on RDDs, and what it tells on the way."""

import numpy as np
import pytest
import tensorflow as tf

from keraunos.compat.sparkflow.graph_utils import build_graph
from keraunos.compat.sparkflow.HogwildSparkModel import HogwildSparkModel
from keraunos.compat.sparkflow.tensorflow_async import build_optimizer
from keraunos.errors import JobError, ModelError
from tests.compat.sparkflow import models

pytestmark = pytest.mark.spark

v1 = tf.compat.v1
XOR = [(np.array([a, b]), float(a != b)) for a in (0.0, 1.0) for b in (0.0, 1.0)]


def line_model():
    """One weight, which the mean of the labels pulls at."""
    x = v1.placeholder(tf.float32, shape=[None], name="x")
    y = v1.placeholder(tf.float32, shape=[None], name="y")
    w = v1.get_variable("w", [], initializer=v1.zeros_initializer())
    v1.get_variable("idle", [2], initializer=v1.ones_initializer())
    v1.losses.mean_squared_error(y, w * x)


@pytest.fixture(scope="module")
def graph():
    return build_graph(line_model)


def rdd_of(spark, rows, partitions):
    return spark.sparkContext.parallelize(rows, partitions)


def test_exclusive_or_is_learned(spark):
    model = HogwildSparkModel(
        tensorflowGraph=build_graph(models.xor_model),
        iters=200,
        tfInput="x:0",
        tfLabel="y:0",
        optimizer=v1.train.AdamOptimizer(learning_rate=0.1),
        master_url="localhost:5017",
        serverStartup=0,
    )
    kernel, bias, outer, outer_bias = model.train(rdd_of(spark, XOR, 1))
    inputs, labels = np.array([x for x, _ in XOR]), np.array([y for _, y in XOR])
    outputs = 1 / (1 + np.exp(-(np.tanh(inputs @ kernel + bias) @ outer + outer_bias)))
    np.testing.assert_allclose(outputs[:, 0], labels, atol=0.2)
    assert model.stop_server() is None


def test_losses_reach_the_driver_in_order(spark, graph, capfd):
    heard = []
    model = HogwildSparkModel(
        tensorflowGraph=graph,
        iters=6,
        tfInput="x",
        tfLabel="y",
        optimizer=build_optimizer("gradient_descent", 0.1, None),
        acquire_lock=True,
        mini_batch=5,
        verbose=1,
        loss_callback=lambda loss, iteration, partition_id: heard.append((partition_id, iteration, loss)),
    )
    weight, idle = model.train(rdd_of(spark, [(1.0, 2.0)] * 22, 2))
    assert float(weight) == pytest.approx(2.0, abs=0.1)
    np.testing.assert_array_equal(idle, [1, 1])
    for rank in (0, 1):
        assert [iteration for partition, iteration, _ in heard if partition == rank] == list(range(6))
    losses = [loss for _, _, loss in heard]
    assert max(losses) <= 4.0
    assert min(losses) < 0.1
    assert capfd.readouterr().out.count("Partition Id: 1, Iteration: ") == 6


def test_turns_and_draws(spark, graph):
    model = HogwildSparkModel(
        tensorflowGraph=graph,
        iters=10,
        tfInput="x",
        tfLabel="y",
        optimizer="momentum",
        mini_batch=3,
        mini_stochastic_iters=2,
        shuffle=False,
        partition_shuffles=2,
    )
    assert float(model.train(rdd_of(spark, [(1.0, -1.0)] * 9, 2))[0]) == pytest.approx(-1.0, abs=0.7)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"optimizer": None}, JobError, "`optimizer` must be one of AdamOptimizer"),
        ({"serverStartup": "8"}, JobError, "`serverStartup` must be a number of seconds"),
        ({"loss_callback": 3}, JobError, "`loss_callback` must be a function"),
        ({"iters": 0}, JobError, "`iters` must be a whole number"),
        ({"tfInput": None}, JobError, "`tfInput` must be the name of a tensor"),
        ({"tensorflowGraph": None}, ModelError, "`tensorflowGraph` must be set"),
        ({"master_url": "nowhere"}, JobError, "`master_url` must be the driver's host and port"),
    ],
)
def test_what_is_wrong_is_told_at_once(graph, arguments, error, message):
    good = {"tensorflowGraph": graph, "tfInput": "x", "tfLabel": "y", "optimizer": "adam"}
    with pytest.raises(error, match=message):
        HogwildSparkModel(**{**good, **arguments})


def test_the_address_of_this_machine():
    host, _, port = HogwildSparkModel.determine_master(5000).rpartition(":")
    assert host
    assert port == "5000"
