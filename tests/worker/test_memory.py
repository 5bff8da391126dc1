"""Memory that ran out: the error says what to lower."""

import keras
import numpy as np
import pyarrow as pa
import pytest

from keraunos.errors import DataError, WorkerError
from keraunos.launch import spark as launch
from keraunos.worker import memory
from tests.conformance import engine

GIANT_BYTES = 1 << 50


def _job(model, **options):
    model.compile("sgd", "mse")
    return engine.job_of(model, 1, batch_size=4, epochs=1, **options)


def _rows():
    return [engine.table(x=np.ones((8, 2), np.float32), y=np.ones((8, 1), np.float32))]


def test_a_step_that_asks_for_too_much_names_what_to_lower():
    # A compiler finds its way around many large arrays; what is sorted has to be there.
    inputs = keras.Input((2,))
    long = keras.layers.RepeatVector((1 << 31) - 1)(keras.layers.Dense(512)(inputs))
    model = keras.Model(inputs, keras.ops.sort(long, axis=1)[:, 0, :1])
    with pytest.raises(WorkerError) as raised:
        engine.fitted(_job(model), _rows())
    told = str(raised.value)
    assert "Worker 0 on " in told
    assert "MemoryError: The worker ran out of memory" in told
    assert "batches of 4 rows (`batchSize`)" in told
    assert "Lower `memoryBudget` or `batchSize`, let fewer workers (`numWorkers`) share a host" in told


def _errors():
    found = []
    for attempt in (
        lambda: np.empty(GIANT_BYTES, np.uint8),
        lambda: pa.allocate_buffer(GIANT_BYTES),
        lambda: bytearray(GIANT_BYTES),
        lambda: keras.ops.zeros(GIANT_BYTES // 4),
    ):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each library has its own
            attempt()
        found.append(raised.value)
    return found


def test_every_librarys_own_error_is_known_and_its_figure_is_told():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    job = _job(model)
    for error in _errors():
        told = memory.explained(error, job, rank=0, workers_on_host=3)
        assert isinstance(told, MemoryError)
        assert told.__cause__ is error
        assert "beside 2 other workers on the host" in str(told)
        first = next(iter(str(error).splitlines()), "without a figure")
        assert first in str(told)


@pytest.mark.parametrize("error", [DataError("out of memory, says a row"), ValueError("no"), KeyboardInterrupt()])
def test_other_errors_stay_as_they_are(error):
    job = _job(keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]))
    assert memory.explained(error, job, rank=0, workers_on_host=1) is error


@pytest.mark.parametrize(
    "text",
    [
        "ExecutorLostFailure (executor 3 exited) Reason: Container from a bad node. Exit status: 137.",
        "The executor with id 2 exited with exit code 137(SIGKILL, possible container OOM).",
        "Reason: Container killed by YARN for exceeding physical memory limits. 5.1 GB of 5 GB physical memory used.",
        "container_status: reason: OOMKilled",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    ],
)
def test_a_job_whose_process_was_killed_is_told_of_memory(text):
    told = str(launch.translated(RuntimeError(text)))
    assert told.startswith("The Spark job failed: ")
    assert "run out of memory. Lower `memoryBudget`" in told


def test_another_failure_of_a_job_says_nothing_of_memory():
    assert "memory" not in str(launch.translated(RuntimeError("Stage 1 was cancelled")))
