"""Training on RDDs of Python records, on a real local Spark."""

import os
import threading

import numpy as np
import pytest
from pyspark import RDD

from keraunos.errors import DataError, JobError, WorkerError
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import TrainingJob
from keraunos.launch import spark as launch
from keraunos.launch.spark import SparkJobs
from keraunos.learners.keras_archive import from_archive
from keraunos.session.registry import session_of
from tests.conformance import engine
from tests.conformance import learner_models as models
from tests.launch.test_spark import frame, job, rows

pytestmark = pytest.mark.spark


def records(spark, partitions=2) -> RDD:
    table = rows()
    x = np.stack(table["x"].to_numpy()).astype("float32")
    return spark.sparkContext.parallelize(list(zip(x, table["y"].to_numpy(), strict=True)), partitions)


def weights(result):
    return np.concatenate([np.reshape(each, -1) for each in from_archive(result.archive).get_weights()])


def test_tuples_train_a_keras_model(spark):
    result = launch.fit(job(epochs=8, learning_rate=0.02), records(spark), verbose=0)
    assert result.history["loss"][-1] < 0.8 * result.history["loss"][0]


def test_the_same_rows_give_the_same_weights_as_in_a_dataframe(spark):
    one = job(workers=1, epochs=2, seed=3)
    from_rdd = launch.fit(one, records(spark, 1), verbose=0)
    from_frame = launch.fit(one, frame(spark, partitions=1), verbose=0)
    np.testing.assert_array_equal(weights(from_rdd), weights(from_frame))


def test_an_rdd_is_computed_once_and_coalesced_without_a_shuffle(spark):
    seen = spark.sparkContext.accumulator(0)

    def counted(record):
        seen.add(1)
        return record

    result = launch.fit(job(workers=2, epochs=3), records(spark, 5).map(counted), verbose=0)
    assert len(result.history["loss"]) == 3
    assert seen.value == 200


def test_fewer_partitions_than_workers_is_an_error_before_any_job(spark, jobs_run):
    with pytest.raises(JobError, match=r"numWorkers=2 needs.*1 partition.*repartition\(2\).*lower numWorkers to 1"):
        launch.fit(job(workers=2), records(spark, 1), verbose=0)
    assert list(jobs_run()) == []


def test_a_wrong_record_fails_the_fit_at_once_and_without_java(spark):
    broken = records(spark).map(lambda record: (record[0][:2], record[1]) if record[0][0] > 2 else record)
    with pytest.raises(DataError, match=r"'x' of the RDD holds an entry of shape \(2,\)") as caught:
        launch.fit(job(), broken, verbose=0)
    assert "org.apache" not in str(caught.value)


def test_an_error_in_the_users_own_function_is_told(spark):
    def fails(record):
        raise KeyError("no such file")

    with pytest.raises(WorkerError, match=r"(?s)Worker \d on \S+ failed: KeyError.*no such file"):
        launch.fit(job(), records(spark).map(fails), verbose=0)


def test_rows_that_cannot_be_computed_are_not_said_to_be_none(spark, monkeypatch):
    """To the workers they end like rows that are over, and Spark tells of the error later."""
    run = SparkJobs._run

    def told_late(self, action):
        def late():
            action()
            threading.Event().wait(1.0)
            raise ValueError("a bad record")

        run(self, late)

    monkeypatch.setattr(SparkJobs, "_run", told_late)
    with pytest.raises(WorkerError, match="a bad record"):
        launch.fit(job(workers=2), records(spark).filter(lambda record: False), verbose=0)


def test_rdd_workers_have_the_environment_of_the_job(spark):
    def with_environment(part):
        yield from ((record, os.environ.get("KERAS_BACKEND")) for record in part)

    context = spark.sparkContext
    before = dict(context.environment)
    with launch.worker_environment(session_of(spark), "tensorflow"):
        wrapped = context.parallelize([1], 1).mapPartitions(with_environment)
        assert wrapped._jrdd is not None
    assert context.environment == before
    assert wrapped.collect() == [(1, "tensorflow")]


def test_servers_of_their_own_and_validation_rows(spark):
    model = models.dense("adam")
    one = engine.job_of(model, 1, batch_size=16, servers=1, validation_split=0.25)
    history = launch.fit(one, records(spark, 1), verbose=0).history
    assert {"loss", "val_loss"} <= set(history)


def test_what_is_neither_a_dataframe_nor_an_rdd_is_refused(spark):
    with pytest.raises(JobError, match=r"a DataFrame or an RDD. Received: list"):
        launch.fit(job(), [(1, 2)], verbose=0)


def graph_of_bytes():
    """A TensorFlow graph that takes four floats as raw bytes; the loss is zero at the weights 1, 2, 3, 4."""
    tf = pytest.importorskip("tensorflow")
    from keraunos.learners.graph_source import graph_source

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        raw, y = v1.placeholder(tf.string, [None]), v1.placeholder(tf.float32, [None])
        weights = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
        told = tf.reshape(tf.reshape(tf.io.decode_raw(raw, tf.float32), [-1, 4]) @ weights, [-1])
        return graph_source(graph, loss=tf.reduce_mean((told - y) ** 2), inputs={"raw": raw}, targets={"y": y})


@pytest.mark.parametrize("kind", ["rdd", "dataframe"])
def test_bytes_reach_a_graph_whole(spark, kind):
    x = np.random.default_rng(0).normal(size=(60, 4)).astype("float32")
    data = [(each.tobytes(), float(each @ [1, 2, 3, 4])) for each in x]
    rdd = spark.sparkContext.parallelize(data, 1)
    wanted = TrainingJob(
        model=graph_of_bytes(),
        columns=Columns((Slot("raw", ("raw",), kind="bytes"),), (Slot("y", ("y",)),)),
        schedule=Schedule(epochs=10, batch_size=10, remainder="join"),
        exchange=ExchangePlan.named("allreduce", rule="sgd(learning_rate=0.1)"),
        workers=1,
    )
    given = rdd if kind == "rdd" else spark.createDataFrame(rdd, "raw binary, y double")
    losses = launch.fit(wanted, given, verbose=0).history["loss"]
    assert losses[-1] < 1e-3 < losses[0]
