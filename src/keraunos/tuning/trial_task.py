"""One trial in one Spark task: trains on all rows, returns the model and its metrics. Runs on executors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from keraunos.errors import KeraunosError
from keraunos.job.training_job import TrainingJob
from keraunos.launch import in_process
from keraunos.worker import resources


def train_trial(
    rows: Any, job: bytes, custom_objects: Mapping[str, Any], indices: Iterator[int]
) -> Iterator[tuple[bytes, str]]:
    """Train; `rows` is a broadcast of an Arrow stream.

    Gives the model's archive and, as JSON, the history or the error that ended it: Spark would only try that again.
    """
    for _ in indices:
        # A fit may have left this process on one core, which another task's worker may have been left on too.
        resources.unpin()
        table = pa.ipc.open_stream(pa.py_buffer(rows.value)).read_all()
        threads = resources.task_threads()
        try:
            result = in_process.fit(TrainingJob.from_bytes(job), table, custom_objects=custom_objects, threads=threads)
        except KeraunosError as error:
            yield b"", json.dumps({"error": type(error).__name__, "message": str(error)})
        else:
            yield result.archive, json.dumps(result.history.to_json())
