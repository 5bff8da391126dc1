"""Trials as Spark tasks, each of which trains on all rows. Runs on the driver.

A trial is a Spark job with a single task, so that its model comes home as soon as it is trained and only the best is
kept.
"""

from __future__ import annotations

import functools
import json
import uuid
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from keraunos.errors import DataError, WorkerError
from keraunos.job.training_job import TrainingJob
from keraunos.launch import preflight
from keraunos.launch import spark as launch
from keraunos.launch.follow import TrainingResult
from keraunos.launch.gang import ledger_of
from keraunos.ml.fit_plan import FitPlan
from keraunos.telemetry.history import History
from keraunos.tuning.trial_task import train_trial


def bytes_of(dataframe: DataFrame, job: TrainingJob) -> int:
    """How many bytes the rows that a job reads take as Arrow."""
    with launch.worker_environment(dataframe.sparkSession, job.model.backend):
        sizes = launch.columns_of(dataframe, job).mapInArrow(_sizes, "bytes long")
    return sum(int(row["bytes"]) for row in sizes.collect())


@dataclass(frozen=True)
class _Sent:
    """Rows on their way to the workers, and what they were made from."""

    dataframe: DataFrame
    columns: tuple[str, ...]
    broadcast: Any


class TaskTrials:
    """Runs trials as tasks; `cancel` ends those that still run, `close` takes the rows back from the workers."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._slots = preflight.total_slots(context)
        self._tag = f"keraunos-{uuid.uuid4().hex}"
        self._sent: list[_Sent] = []

    @property
    def slots(self) -> int:
        """How many trials can run at once."""
        return self._slots

    def send(self, plan: FitPlan) -> Any:
        """The rows of a plan as a broadcast; rows that were sent before are not sent again."""
        names = plan.job.columns.names
        for each in self._sent:
            if each.columns == names and each.dataframe is plan.rows:
                return each.broadcast
        table = launch.columns_of(plan.rows, plan.job).toArrow()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        broadcast = self._context.broadcast(sink.getvalue().to_pybytes())
        self._sent.append(_Sent(plan.rows, names, broadcast))
        return broadcast

    def run(self, plan: FitPlan, rows: Any) -> TrainingResult:
        """Train a plan in one task; any thread may call this."""
        # Each trial has its task to itself, so that there are no others to share ports or servers with.
        job = replace(plan.job, workers=1, servers="driver", ports=None)
        task = functools.partial(train_trial, rows, job.to_bytes(), dict(plan.custom_objects))
        with ledger_of(self._context).hold(1, self._slots):
            self._context.addJobTag(self._tag)
            try:
                with launch.worker_environment(self._context, job.model.backend):
                    trial = self._context.parallelize([0], 1).mapPartitions(task)
                    # Spark notes the environment of the Python workers when it makes the Java RDD.
                    _ = trial._jrdd
                ((archive, text),) = trial.collect()
            finally:
                self._context.removeJobTag(self._tag)
        told = json.loads(text)
        if "error" in told:
            # Rows that are wrong are so for every trial.
            raise (DataError if told["error"] == "DataError" else WorkerError)(told["message"])
        return TrainingResult(archive, History.from_json(told))

    def cancel(self) -> None:
        """End the trials that still run."""
        self._context.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """Take the rows back from the workers."""
        for each in self._sent:
            each.broadcast.destroy()


def _sizes(batches: Any) -> Any:
    total = sum(batch.nbytes for batch in batches)
    yield pa.RecordBatch.from_pydict({"bytes": pa.array([total], pa.int64())})
