"""The engine's promises for TensorFlow graphs: equality with one session, exact metrics, state that travels."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from keraunos.formats.registry import load_learner
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.learners.graph_archive import GraphArchive
from keraunos.testing.learner_batches import FEATURES
from tests.conformance import engine, graph_models

v1 = tf.compat.v1

UNEVEN = [41, 22]
ROWS = 63


def digits(rows=ROWS, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, FEATURES)).astype("float32")
    return engine.table(x=x, y=(x[:, 0] > 0).astype("int64") + (x[:, 1] > 0), held_out=np.arange(rows) % 3 == 0)


def vector(result):
    return GraphArchive.from_bytes(result.archive).vector()


def plain(model, job, parts):
    """The same job in one session, fed the same sequence of global batches."""
    for inputs, targets, _ in engine.global_batches(job, parts):
        model.train_on_batch(inputs, targets)
    return model.read()


def difference(ours, theirs):
    return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


@pytest.mark.paired
@pytest.mark.parametrize("servers", ["driver", "workers", 2])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_graphs_own_optimizer_equals_one_session_on_the_same_global_batches(optimizer, servers):
    parts = engine.partitions(digits(), UNEVEN)
    model = graph_models.dense(optimizer)
    job = engine.job_of(model.source(), 2, servers=servers, batch_size=8, epochs=3, seed=3)
    trained = vector(engine.fitted(job, parts))
    assert difference(trained, plain(model, job, parts)) < 1e-4


@pytest.mark.parametrize("servers", ["driver", "workers"])
def test_a_rule_on_the_servers_equals_one_session(servers):
    parts = engine.partitions(digits(), UNEVEN)
    model = graph_models.dense("sgd")
    source = model.source(train_op=None, gradients=None, variables=None)
    plan = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=0.1)")
    job = engine.job_of(source, 2, exchange=plan, servers=servers, batch_size=8, epochs=3, seed=3)
    trained = vector(engine.fitted(job, parts))
    assert difference(trained, plain(model, job, parts)) < 1e-4


def test_whole_steps_of_one_worker_are_those_of_one_session():
    parts = engine.partitions(digits(), [ROWS])
    model = graph_models.dense("adam")
    job = engine.job_of(model.source(gradients=None), 1, exchange="averaging", every=4, batch_size=8, epochs=2)
    trained = vector(engine.fitted(job, parts))
    assert difference(trained, plain(model, job, parts)) < 1e-5


@pytest.mark.parametrize("exchange", ["allreduce", "averaging"])
def test_two_runs_are_equal_to_the_bit_dropout_included(exchange):
    parts = engine.partitions(digits(), UNEVEN)
    job = engine.job_of(graph_models.dropout().source(), 2, exchange=exchange, batch_size=8, epochs=2, seed=5)
    np.testing.assert_array_equal(vector(engine.fitted(job, parts)), vector(engine.fitted(job, parts)))


@pytest.mark.parametrize("exchange", ["allreduce", "averaging", "downpour", "elastic"])
def test_batch_statistics_travel_and_metrics_are_those_of_one_session(exchange):
    rows = digits(300)
    parts = engine.partitions(rows, [200, 100])
    model = graph_models.batch_norm()
    every = 5 if exchange == "averaging" else None
    job = engine.job_of(
        model.source(), 2, exchange=exchange, every=every, validation="held_out", batch_size=10, epochs=8
    )
    result = engine.fitted(job, parts)
    assert result.history["accuracy"][-1] > 0.6
    archive = GraphArchive.from_bytes(result.archive)
    moved = archive.values()
    assert np.abs(moved["moving_mean"]).max() > 0.01
    assert np.abs(moved["moving_variance"] - 1).max() > 0.01
    if job.exchange.synchronous:
        held_out = rows.filter(rows["held_out"])
        learner = load_learner(job.model)
        learner.write(archive.vector())
        x = np.stack(held_out["x"].to_numpy())
        found = learner.predict(x).argmax(axis=1) == held_out["y"].to_numpy()
        assert result.history["val_accuracy"][-1] == pytest.approx(found.mean())


def test_a_remainder_of_one_row_joins_the_batch_before_where_labels_are_squeezed():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, FEATURES], name="x")
        y = v1.placeholder(tf.int32, [None, 1], name="y")
        weights = v1.get_variable("w", [FEATURES, 3])
        logits = tf.matmul(x, weights)
        labels = tf.squeeze(y)
        labels.set_shape([None])
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    source = graph_models.graph_source(graph, inputs={"x": x}, targets={"y": y}, loss=loss)
    plan = ExchangePlan("gradients", 1, "asynchronous", "sgd(learning_rate=0.1)")
    job = engine.job_of(source, 2, exchange=plan, batch_size=8, epochs=2, remainder="join")
    result = engine.fitted(job, engine.partitions(digits(50), [33, 17]))
    assert result.history["loss"][-1] < result.history["loss"][0]
