"""Training in plain processes: the same engine without Spark, and what happens when a process dies or is wrong."""

import os
import signal
import subprocess
import threading

import keras
import numpy as np
import pytest

from keraunos.errors import DataError, JobError, WorkerError
from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive
from tests.conformance import engine
from tests.conformance import learner_models as models


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


class KillsAWorker(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            found = subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "local_worker"], capture_output=True, check=True
            )
            os.kill(int(found.stdout.split()[0]), signal.SIGKILL)


def test_a_killed_worker_ends_the_fit_with_its_rank():
    job = engine.job_of(models.dense("sgd"), 2, batch_size=16, epochs=1000)
    with pytest.raises(WorkerError, match=r"Worker \d .* ended with code -9. .*run out of memory. Lower `memoryBudget`"):
        local.fit(job, engine.partitions(rows(), [100, 100]), callbacks=[KillsAWorker()], verbose=0)


def test_wrong_rows_end_every_process_with_one_clear_error():
    wrong = rows().set_column(0, "x", engine.table(x=np.full((200, models.FEATURES), np.nan, "float32"))["x"])
    job = engine.job_of(models.dense("sgd"), 2, batch_size=16)
    with pytest.raises(DataError, match="NaN"):
        local.fit(job, engine.partitions(wrong, [100, 100]), verbose=0)


def test_an_interrupt_stops_the_processes():
    job = engine.job_of(models.dense("sgd"), 2, batch_size=16, epochs=100_000)
    main = threading.main_thread().ident
    interrupt = threading.Timer(8, signal.pthread_kill, [main, signal.SIGINT])
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            local.fit(job, engine.partitions(rows(), [100, 100]), verbose=0)
    finally:
        interrupt.cancel()
        interrupt.join()


def test_partitions_must_match_the_workers_and_hold_rows():
    job = engine.job_of(models.dense("sgd"), 2)
    with pytest.raises(JobError, match="one partition a worker"):
        local.fit(job, [rows()], verbose=0)
    with pytest.raises(DataError, match="no rows"):
        local.fit(job, engine.partitions(rows(), [0, 0]), verbose=0)
