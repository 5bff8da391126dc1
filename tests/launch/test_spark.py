"""Training on a real local Spark: errors, interrupts, cancelled jobs, side-by-side fits, no shuffle without need."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from keraunos.errors import ClusterError, DataError, ModelError, WorkerError
from keraunos.launch import spark as launch
from keraunos.learners.keras_archive import from_archive
from keraunos.session.registry import session_of
from tests.conformance import engine
from tests.conformance import learner_models as models

pytestmark = pytest.mark.spark


def rows(count=200, **columns):
    random = np.random.default_rng(0)
    x = random.normal(size=(count, models.FEATURES)).astype("float32")
    return engine.table(x=x, y=(x[:, 0] > 0).astype("int64"), **columns)


def frame(spark, table=None, partitions=2):
    return spark.createDataFrame(rows() if table is None else table).repartition(partitions)


def job(workers=2, epochs=1, **options):
    return engine.job_of(models.dense("adam"), workers, batch_size=16, epochs=epochs, **options)


class Signals(keras.callbacks.Callback):
    """Calls a function when the first epoch has ended."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.function()


def running_workers():
    """The Python workers of Spark that hold a connection of ours are told by the server threads of this process."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("keraunos")]


@pytest.mark.parametrize("exchange", ["allreduce", "averaging", "downpour"])
def test_every_plan_trains(spark, exchange):
    result = launch.fit(job(epochs=8, exchange=exchange, learning_rate=0.02), frame(spark), verbose=0)
    assert result.history["loss"][-1] < result.history["loss"][0]
    assert running_workers() == []


def test_asynchronous_plans_with_more_workers_than_slots_run_in_waves(spark):
    result = launch.fit(job(workers=5, epochs=2, exchange="downpour"), frame(spark), verbose=0)
    assert len(result.history["loss"]) == 2


def test_too_few_slots_for_a_synchronous_plan(spark):
    with pytest.raises(ClusterError, match=r"numWorkers=5 is above the 2 task slot.*Lower numWorkers to 2"):
        launch.fit(job(workers=5), frame(spark), verbose=0)


def test_a_metric_that_cannot_be_merged_is_refused_before_any_task(spark, jobs_run):
    model = models.dense("sgd")
    model.compile("sgd", model.loss, metrics=[models.Largest()])
    data = frame(spark)
    with pytest.raises(ModelError, match=r"metric 'largest'.*merge_state"):
        launch.fit(engine.job_of(model, 2), data, verbose=0)
    assert list(jobs_run()) == []
    launch.fit(job(), data, verbose=0)
    assert jobs_run()


def test_a_dataframe_without_rows(spark):
    with pytest.raises(DataError, match="no rows to train on"):
        launch.fit(job(), frame(spark).limit(0), verbose=0)


def test_a_null_fails_the_fit_with_its_column_and_not_with_java(spark):
    dirty = frame(spark).selectExpr("if(rand(1) < 0.05, null, x) as x", "y")
    with pytest.raises(DataError, match="'x'") as caught:
        launch.fit(job(), dirty, verbose=0)
    assert "Java" not in str(caught.value)
    assert "org.apache" not in str(caught.value)


def test_a_workers_error_comes_with_rank_host_and_stack(spark):
    model = keras.Sequential([keras.Input((models.FEATURES,)), Breaks(), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    broken = engine.job_of(model, 2, batch_size=16)
    with pytest.raises(
        WorkerError, match=r"(?s)Worker \d on \S+ failed: FileNotFoundError: .*it breaks here"
    ) as caught:
        launch.fit(broken, frame(spark), custom_objects={"Breaks": Breaks}, verbose=0)
    assert caught.value.rank in (0, 1)
    assert caught.value.host
    assert any("call" in line for line in caught.value.log_lines)
    assert running_workers() == []


@keras.saving.register_keras_serializable("tests")
class Breaks(keras.layers.Layer):
    """Works on the driver, where it is built, and fails on workers."""

    def call(self, inputs, training=False):
        if training:
            raise FileNotFoundError("it breaks here")
        return inputs


def test_ctrl_c_stops_the_fit_and_the_spark_job(spark):
    main = threading.main_thread().ident
    interrupt = Signals(lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        launch.fit(job(epochs=100_000), frame(spark), callbacks=[interrupt], verbose=0)
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert running_workers() == []
    assert spark.range(10).count() == 10


def test_cancel_all_jobs_ends_the_fit(spark):
    cancel = Signals(spark.sparkContext.cancelAllJobs)
    with pytest.raises(WorkerError, match="(?i)cancel"):
        launch.fit(job(epochs=100_000), frame(spark), callbacks=[cancel], verbose=0)
    assert running_workers() == []
    assert launch.fit(job(), frame(spark), verbose=0).history["loss"]


def test_fits_side_by_side_take_turns(spark):
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(launch.fit, job(epochs=2), frame(spark), verbose=0) for _ in range(3)]
        losses = [future.result(timeout=120).history["loss"] for future in futures]
    assert losses[0] == losses[1] == losses[2]


def test_python_workers_are_reused_and_leave_the_pool_as_it_was(spark):
    before = dict(spark.sparkContext.environment)
    launch.fit(job(), frame(spark), verbose=0)
    assert spark.sparkContext.environment == before

    def worker_ids():
        with launch.worker_environment(session_of(spark), keras.config.backend()):
            mapped = spark.range(2, numPartitions=2).mapInArrow(_process_ids, "id long")
        return {row.id for row in mapped.collect()}

    first = worker_ids()
    launch.fit(job(), frame(spark), verbose=0)
    assert first & worker_ids()


def _process_ids(batches):
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"id": [os.getpid()]})


def test_rows_are_not_shuffled_where_partitions_match(spark, tmp_path):
    frame(spark).write.parquet(str(tmp_path / "two"))
    files = spark.read.parquet(str(tmp_path / "two"))
    as_it_is = launch._one_partition_a_worker(session_of(spark), files, job())
    assert "Exchange" not in as_it_is._jdf.queryExecution().executedPlan().toString()
    spread = launch._one_partition_a_worker(session_of(spark), files, job(workers=1))
    assert "Exchange" in spread._jdf.queryExecution().executedPlan().toString()
    asked_for = launch._one_partition_a_worker(session_of(spark), frame(spark).filter("y >= 0").repartition(2), job())
    assert asked_for._jdf.queryExecution().executedPlan().toString().count("Exchange") == 1


def test_uneven_partitions_are_exact_and_said(spark, caplog):
    table = rows(70)
    uneven = frame(spark, table, 1).unionAll(frame(spark, table, 1).limit(4))
    uneven = uneven.unionAll(uneven.limit(0))
    result = launch.fit(job(workers=2, epochs=2), uneven.coalesce(2), verbose=0)
    assert from_archive(result.archive).built
    assert "unevenly" in caplog.text or len(result.history["loss"]) == 2
