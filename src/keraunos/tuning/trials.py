"""Trials as Spark tasks, each of which trains on all rows. Runs on the driver."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from keraunos.errors import DataError, WorkerError
from keraunos.job.training_job import TrainingJob
from keraunos.launch import spark as launch
from keraunos.launch.training_result import TrainingResult
from keraunos.ml.fit_plan import FitPlan
from keraunos.session.registry import session_of
from keraunos.session.session import Session
from keraunos.telemetry.history import History
from keraunos.tuning.task_pool import TaskPool
from keraunos.tuning.trial_task import train_trial


def bytes_of(dataframe: DataFrame, job: TrainingJob) -> int:
    """Returns how many bytes the rows that a job reads take as Arrow."""
    with launch.worker_environment(session_of(dataframe), job.model.backend):
        sizes = launch.columns_of(dataframe, job).mapInArrow(_sizes, "bytes long")
    return sum(int(row["bytes"]) for row in sizes.collect())


@dataclass(frozen=True)
class _Sent:
    """Rows on their way to the workers, and what they were made from."""

    dataframe: DataFrame
    columns: tuple[str, ...]
    broadcast: Any


class TaskTrials(TaskPool):
    """Runs trials as tasks; `close` takes the rows back from the workers."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sent: list[_Sent] = []

    def send(self, plan: FitPlan) -> Any:
        """Returns the rows of a plan as a broadcast; rows that were sent before are not sent again."""
        names = plan.job.columns.names
        for each in self._sent:
            if each.columns == names and each.dataframe is plan.rows:
                return each.broadcast
        table = launch.columns_of(plan.rows, plan.job).toArrow().rename_columns(list(plan.job.columns.names))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        broadcast = self._session.broadcast(sink.getvalue().to_pybytes())
        self._sent.append(_Sent(plan.rows, names, broadcast))
        return broadcast

    def train(self, plan: FitPlan, rows: Any) -> TrainingResult:
        """Train a plan in one task; any thread may call this."""
        # Each trial has its task to itself, so that there are no others to share ports or servers with.
        job = replace(plan.job, workers=1, servers="driver", ports=None)
        task = functools.partial(train_trial, rows, job.to_bytes(), dict(plan.custom_objects))
        ((archive, text),) = self.run(task, job.model.backend)
        told = json.loads(text)
        if "error" in told:
            # Rows that are wrong are so for every trial.
            raise (DataError if told["error"] == "DataError" else WorkerError)(told["message"])
        return TrainingResult(lambda: bytes(archive), History.from_json(told))

    def close(self) -> None:
        """Take the rows back from the workers."""
        for each in self._sent:
            each.broadcast.destroy()


def _sizes(batches: Any) -> Any:
    total = sum(batch.nbytes for batch in batches)
    yield pa.RecordBatch.from_pydict({"bytes": pa.array([total], pa.int64())})
