"""Training in plain processes: the same engine without Spark, and what happens when a process dies or is wrong."""

import os
import resource
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

from keraunos.errors import ClusterError, DataError, JobError, WorkerError
from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive
from tests.conformance import engine
from tests.conformance import learner_models as models
from tests.launch.worker_killer import KillsAWorker


def rows(count=200):
    random = np.random.default_rng(0)
    x = random.normal(size=(count, models.FEATURES)).astype("float32")
    return engine.table(x=x, y=(x[:, 0] > 0).astype("int64"))


def test_processes_give_the_same_bits_as_threads():
    parts = engine.partitions(rows(), [120, 80])
    job = engine.job_of(models.dense("adam"), 2, batch_size=16, epochs=2)
    result = local.fit(job, parts, verbose=0)
    threads, history = engine.train(job, parts)
    assert engine.difference(from_archive(result.archive), threads) == 0.0
    assert result.history["loss"] == pytest.approx(history["loss"], rel=1e-6)


def test_a_killed_worker_ends_the_fit_with_its_rank():
    job = engine.job_of(models.dense("sgd"), 2, batch_size=16, epochs=1000)
    with pytest.raises(
        WorkerError, match=r"Worker \d .* ended with code -9. .*run out of memory. Lower `memoryBudget`"
    ):
        local.fit(job, engine.partitions(rows(), [100, 100]), callbacks=[KillsAWorker()], verbose=0)


def test_a_disk_without_room_for_the_rows_ends_the_fit_with_its_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    job = replace(engine.job_of(models.dense("adam"), 1, batch_size=16), memory_budget=1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, hard))
    try:
        with pytest.raises(
            ClusterError, match=r"Worker 0 on .* could not be written to .*bytes so far.*SPARK_LOCAL_DIRS"
        ):
            local.fit(job, [rows(40_000)], verbose=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("forked_workers")
def test_numbers_that_are_not_finite_end_the_processes_well():
    x = np.ones((60, models.FEATURES), np.float32)
    x[50] = 1e30
    model = keras.Sequential([keras.Input((models.FEATURES,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    job = engine.job_of(model, 2, batch_size=10, epochs=3)
    table = engine.table(x=x, y=np.ones((60, 1), np.float32))
    result = local.fit(job, engine.partitions(table, [30, 30]), verbose=0)
    assert "worker 1 on " in result.history.ended
    assert np.isfinite(result.parameters).all()


@pytest.mark.usefixtures("forked_workers")
def test_wrong_rows_end_every_process_with_one_clear_error():
    wrong = rows().set_column(0, "x", engine.table(x=np.full((200, models.FEATURES), np.nan, "float32"))["x"])
    job = engine.job_of(models.dense("sgd"), 2, batch_size=16)
    with pytest.raises(DataError, match="NaN"):
        local.fit(job, engine.partitions(wrong, [100, 100]), verbose=0)


class Interrupts(keras.callbacks.Callback):
    """Ctrl-C once training runs."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("forked_workers")
def test_an_interrupt_stops_the_processes():
    job = engine.job_of(models.dense("sgd"), 2, batch_size=16, epochs=100_000)
    with pytest.raises(KeyboardInterrupt):
        local.fit(job, engine.partitions(rows(), [100, 100]), callbacks=[Interrupts()], verbose=0)


class LoadsForever(keras.layers.Layer):
    """Says that a worker reads its model, which never ends."""

    @classmethod
    def from_config(cls, config):
        if "local_worker" in str(getattr(sys.modules["__main__"], "__file__", "")):
            Path(os.environ["LOADS_FOREVER"]).touch()
            threading.Event().wait()
        return super().from_config(config)


def test_an_interrupt_while_a_model_is_read_leaves_nothing_behind(tmp_path, monkeypatch):
    reading = tmp_path / "reading"
    monkeypatch.setenv("LOADS_FOREVER", str(reading))
    model = keras.Sequential([keras.Input((models.FEATURES,)), LoadsForever(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    job = engine.job_of(model, 1, batch_size=16)

    def interrupt():
        while threading.main_thread().is_alive() and not reading.exists():
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        local.fit(job, [rows()], verbose=0)
    thread.join()


def test_partitions_must_match_the_workers_and_hold_rows():
    job = engine.job_of(models.dense("sgd"), 2)
    with pytest.raises(JobError, match="one partition a worker"):
        local.fit(job, [rows()], verbose=0)
    with pytest.raises(DataError, match="no rows"):
        local.fit(job, engine.partitions(rows(), [0, 0]), verbose=0)


def test_a_backend_that_a_worker_does_not_have_is_one_sentence():
    job = engine.job_of(models.dense("adam"), 1, batch_size=16)
    job = replace(job, model=replace(job.model, backend="torch"))
    told = r"^Worker 0 on \S+: The model cannot run on 'torch': the package 'torch' is not installed for \S+ on \S+\. "
    with pytest.raises(ClusterError, match=told + r"Installed: jax.*`pip install 'keraunos\[torch\]'`[^\n]*$"):
        local.fit(job, [rows()], verbose=0)
