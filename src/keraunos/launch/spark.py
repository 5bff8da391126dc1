"""Training on Spark: one job, one task a worker. Runs on the driver.

A DataFrame goes to the workers as Arrow record batches through `mapInArrow`, an RDD as the records it holds through
`mapPartitions`; the one Spark job runs in a thread of its own under a tag of its own, so that it can be cancelled
without touching anything else.
"""

from __future__ import annotations

import functools
import logging
import math
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pyspark import RDD
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType, UserDefinedType

from keraunos.data.arrow_types import IMAGE_FIELDS
from keraunos.errors import ClusterError, JobError, WorkerError
from keraunos.job.columns import Columns
from keraunos.job.saving import Checkpoints
from keraunos.job.training_job import TrainingJob
from keraunos.launch import interrupts, preflight
from keraunos.launch.attempts import saved, until_whole
from keraunos.launch.callback_checks import check_callbacks
from keraunos.launch.fit import Fit
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.gang import ledger_of
from keraunos.launch.hadoop_checkpoints import folder_of
from keraunos.launch.hooks import Hooks
from keraunos.launch.interrupts import Interrupts
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.spark_task import RESULT_SCHEMA, serve_slice, train_partition, train_records
from keraunos.launch.task_payload import Payload, packed
from keraunos.launch.training_result import TrainingResult
from keraunos.learners.between_tasks import cheaply
from keraunos.session.registry import session_of
from keraunos.session.session import Session
from keraunos.session.task_status import MEMORY_ADVICE, Tasks, excerpt, java_memory
from keraunos.worker.memory import after_kill

logger = logging.getLogger(__name__)

_NO_TASKS = Tasks()
_NO_PYTHON = re.compile(r"pyspark\.daemon's stdout|Cannot run program \"[^\"]*\"")

# How long a fit that has ended waits for Spark to end its tasks.
_CANCEL_SECONDS = 30.0
# What Spark tells of a stage may be late by so much: between two of them it looks as if nothing ran.
_STATUS_SECONDS = 10.0


def fit(
    job: TrainingJob,
    data: DataFrame | RDD[Any],
    *,
    custom_objects: Mapping[str, Any] | None = None,
    callbacks: Sequence[Any] = (),
    hooks: Sequence[Hooks] = (),
    listeners: Sequence[Any] = (),
    verbose: int | str = "auto",
    host: str | None = None,
    memory: RuleMemory | None = None,
    checkpoints: Checkpoints | None = None,
) -> TrainingResult:
    """Train on Spark, in as many tasks as the job has workers, and bring the model home.

    `data` is a DataFrame with the job's columns, or an RDD of records that have an entry for each of them (see
    `keraunos.data.records`). An RDD is computed once and never shuffled. `host` is the address of this machine that
    the driver's servers listen on, instead of Spark's own choice; `job.ports` says on which ports. `memory` carries
    what the server's rule remembers from one fit to the next. With `checkpoints` the training is saved there as it
    goes, and goes on from there when this is called again. `listeners` are told what happens (see
    `keraunos.telemetry.listener`).
    """
    check_callbacks(callbacks)
    session = _session_of_rows(data)
    cluster = preflight.survey(session, job, host)
    if isinstance(data, RDD):
        preflight.check_partitions(data.getNumPartitions(), job)
    if job.memory_budget is None:
        job = replace(job, memory_budget=cluster.memory_budget)
    # Spark may have to run something for this; nothing is open yet that a Ctrl-C could leave behind.
    rows = _one_partition_a_worker(session, data, job)
    with (
        Interrupts(),
        FitEvents(job, listeners, executors=cluster.executors, slots=cluster.slots) as events,
        saved(job, checkpoints, lambda path: folder_of(session, path)) as saving,
    ):

        def attempt() -> TrainingResult:
            with Fit.open(
                job,
                events,
                host=cluster.host,
                advertised=cluster.advertised,
                custom_objects=custom_objects,
                callbacks=callbacks,
                hooks=hooks,
                verbose=verbose,
                memory=memory,
                saving=saving,
            ) as opened:
                if opened.over:
                    return opened.finish()
                return _launched(job, rows, opened, session, cluster, custom_objects)

        with ledger_of(session.application).hold(min(job.placement.tasks(job.workers), cluster.slots), cluster.slots):
            return until_whole(attempt, saving, events.warn)


def _launched(
    job: TrainingJob,
    rows: DataFrame | RDD[Any],
    opened: Fit,
    session: Session,
    cluster: preflight.Cluster,
    custom_objects: Mapping[str, Any] | None,
) -> TrainingResult:
    """Start the tasks and follow them to the end."""
    servers = job.placement.server_tasks
    place = {"threads": cluster.task_cpus, "workers_on_host": cluster.workers_on_host}
    payload = Payload(place, tuple(job.columns.names), custom_objects)
    with ExitStack() as stack:
        with worker_environment(session, job.model.backend, fresh=cluster.has_devices):
            # Made in here: Spark notes the workers' environment when a function is wrapped.
            serve = _serving(session, opened.connection, servers) if servers else None
            train = _training(session, rows, opened.connection, payload, stack)
        jobs = stack.enter_context(SparkJobs(session, job.placement.tasks(job.workers)))
        if serve is not None:
            # Their slots first: workers that took them all would wait for servers that cannot start.
            jobs.run(serve)
            opened.await_servers(jobs)
        jobs.run(train)
        return opened.follow(jobs)


def columns_of(dataframe: DataFrame, job: TrainingJob) -> DataFrame:
    """Only the job's columns, as `read_columns` gives them: what a worker reads."""
    return read_columns(dataframe, job.columns)


def read_columns(dataframe: DataFrame, columns: Columns) -> DataFrame:
    """Only these columns, vectors as plain structs.

    They are numbered, c0, c1 and so on, in the order of their names: `mapInArrow` cannot take names with dots.
    """
    fields = {field.name: field for field in dataframe.schema.fields}
    return dataframe.select(
        *(read_column(fields[name]).alias(f"c{number}") for number, name in enumerate(columns.names))
    )


def read_column(field: Any) -> Any:
    """A column as it travels to Python: vectors as plain structs, images without what no model reads."""
    column = sf.col(quoted(field.name))
    if isinstance(field.dataType, UserDefinedType):
        return sf.unwrap_udt(column)
    if isinstance(field.dataType, StructType) and set(field.dataType.names) > set(IMAGE_FIELDS):
        return column.dropFields(*(name for name in field.dataType.names if name not in IMAGE_FIELDS))
    return column


@contextmanager
def worker_environment(session: Session, backend: str, *, fresh: bool = False) -> Iterator[None]:
    """Python functions that Spark wraps in here run in workers that are set up for `backend`.

    Jobs that ask for the same environment find the Python workers warm; with `fresh` a job gets workers of its own.
    """
    preflight.check_backend(session, backend)
    threads = session.setting("spark.task.cpus") or "1"
    wanted = {
        "KERAS_BACKEND": backend,
        "OMP_NUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # Random numbers that need not be the same however an array is cut over devices cost half as much.
        "JAX_THREEFRY_PARTITIONABLE": "0",
    }
    if fresh:
        wanted["KERAUNOS_JOB"] = uuid.uuid4().hex
    with session.environment(wanted):
        yield


def translated(error: BaseException, tasks: Tasks = _NO_TASKS) -> BaseException:
    """A Spark failure in words that help; workers that could speak have told their own error already.

    `tasks` is what Spark knows of the tasks of the job that failed.
    """
    text = str(error)
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if missing:
        return ClusterError(
            f"The executors cannot import {missing.group(1)!r}. Install the driver's packages on every executor, point "
            "PYSPARK_PYTHON to the Python that has them, or ship an environment with spark.archives."
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return ClusterError(
            f"The executors run another Python than the driver: {excerpt(text, 'PYTHON_VERSION_MISMATCH')}. Set "
            "PYSPARK_PYTHON to the same version on both sides."
        )
    said = excerpt(text)
    if _NO_PYTHON.search(text):
        return ClusterError(
            f"The executors could not start Python: {said.rstrip('.')}. Set PYSPARK_PYTHON, or spark.pyspark.python, "
            "to a Python that every executor has. The executors' logs have more."
        )
    # A lost executor's last words were of the attempt before.
    memory = java_memory(text) or ("ExecutorLostFailure" in text and tasks.java_memory)
    if memory:
        return WorkerError(f"The Spark job failed because Java ran out of memory: {memory}. {MEMORY_ADVICE}")
    known = f" {tasks}" if tasks.last_error not in said else ""
    return WorkerError(f"The Spark job failed: {said}{after_kill(text)}{known}")


class SparkJobs:
    """The Spark jobs of one fit, each in its own thread, under one tag; leaving the context ends them."""

    def __init__(self, session: Session, tasks: int) -> None:
        self._session = session
        self._tasks = tasks
        self._tag = f"keraunos-{uuid.uuid4().hex}"
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self._began = time.time()
        self._prepared = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        # Workers that wait for the server end by themselves at once. What is left then is one that hangs, was left out,
        # or was started again when nobody needed it any more.
        self._join(0.5 if kind is not None else 5.0)
        deadline = time.monotonic() + _CANCEL_SECONDS
        while not self.ended() and not self._session.is_stopped() and time.monotonic() < deadline:
            # More than once: Spark cancels the jobs that it has, and a thread may be about to submit one.
            self._session.cancel(self._tag)
            self._join(1.0)

    def run(self, action: Callable[[], Any]) -> None:
        """Start a Spark job; its result is ignored."""
        thread = self._session.thread(functools.partial(self._run, action), "keraunos-spark-job")
        # Noted before it runs, so that nothing runs that is not noted.
        self._threads.append(thread)
        thread.start()

    def check(self) -> None:
        """Raise what made a Spark job fail, or the Ctrl-C that came since the last time."""
        interrupts.check()
        if not self._errors:
            return
        if self._session.is_stopped():
            raise ClusterError(
                "The SparkContext was stopped while a fit ran, and its workers went with it. Expected: one that lives "
                "until `fit` has returned. Look for a spark.stop() in another thread, or for the end of Spark's JVM in "
                "the driver's log."
            ) from self._errors[0]
        raise translated(self._errors[0], self._known()) from self._errors[0]

    def ended(self) -> bool:
        """Whether all Spark jobs are over."""
        return not any(thread.is_alive() for thread in self._threads)

    def advice(self) -> str:
        """What Spark knows of the tasks, and what a user may do when workers do not come."""
        tasks = self._known()
        reach = (
            "see that spark.driver.host, and the ports of serverPorts where they are given, can be reached from the "
            "executors."
        )
        if tasks.failed or tasks.lost_executor:
            return f"{tasks} The executors' logs have more."
        if tasks.running >= self._tasks:
            return f"All {self._tasks} tasks run, so that it is the driver that workers do not reach: {reach}"
        return (
            f"{tasks.running} of {self._tasks} tasks run. Other Spark jobs may hold the slots, or executors are "
            f"missing: see that {self._tasks} tasks can run at once, or lower numWorkers. Or workers do not reach the "
            f"driver: {reach}"
        )

    def preparing(self, seconds: float) -> bool:
        """Whether Spark computes what the workers will read, in stages before theirs, or did within these seconds."""
        if self._session.computes_rows(self._tag, seconds):
            self._prepared = time.monotonic()
        return time.monotonic() - self._prepared < _STATUS_SECONDS

    def abandon(self, rank: int) -> None:
        """The training goes on without this rank: its task, which may never get a slot, is cancelled in the end."""
        logger.info("the task of rank %d is not waited for", rank)

    def _known(self) -> Tasks:
        return self._session.tasks(self._tag, self._began)

    def _join(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(timeout=max(0.0, deadline - time.monotonic()))

    def _run(self, action: Callable[[], Any]) -> None:
        try:
            self._session.add_tag(self._tag)
            if not self._closing.is_set():
                action()
        except BaseException as error:  # noqa: BLE001 - it is raised by the thread that follows the fit
            self._errors.append(error)


def _session_of_rows(data: Any) -> Session:
    if isinstance(data, RDD | DataFrame):
        return session_of(data)
    raise JobError(f"The rows must come as a DataFrame or an RDD. Received: {type(data).__name__}.")


def _training(
    session: Session, rows: DataFrame | RDD[Any], connection: Mapping[str, Any], payload: Payload, stack: ExitStack
) -> Callable[[], Any]:
    """The Spark action that trains every rank; what it needs of Spark's lives as long as `stack`."""
    if isinstance(rows, DataFrame):
        content = stack.enter_context(packed(session, payload))
        arrow_task = functools.partial(train_partition, connection, content)
        collect: Callable[[], Any] = rows.mapInArrow(arrow_task, RESULT_SCHEMA).collect
        return collect
    # What else Spark would run on a partition, in one closure with ours, may be large and goes with the payload.
    source, before = session.apart(rows)
    content = stack.enter_context(packed(session, replace(payload, before=before)))
    return session.job(source.mapPartitionsWithIndex(functools.partial(train_records, connection, content)))


def _serving(session: Session, connection: Mapping[str, Any], servers: int) -> Callable[[], Any]:
    """The Spark action whose tasks each host one slice of the parameters until the training is over."""
    task = functools.partial(serve_slice, connection)
    return session.job(session.parallelize(range(servers), servers).mapPartitions(task))


def _one_partition_a_worker(session: Session, data: DataFrame | RDD[Any], job: TrainingJob) -> DataFrame | RDD[Any]:
    """What the workers read, in as many partitions as there are workers."""
    if isinstance(data, RDD):
        if data.getNumPartitions() == job.workers:
            return data
        # Whichever functions in Python make the records run once a partition, in processes that only read.
        _, joined = session.apart(data)
        return (data if joined is None else data.mapPartitions(cheaply)).coalesce(job.workers)
    selected = columns_of(data, job)
    return selected if session.partitions_of(selected) == job.workers else selected.repartition(job.workers)


def quoted(name: str) -> str:
    """The name as Spark takes it for one column's, dots and backticks included."""
    return f"`{name.replace('`', '``')}`"
