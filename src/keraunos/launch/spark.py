"""Training on Spark: one job, one task a worker. Runs on the driver.

A DataFrame goes to the workers as Arrow record batches through `mapInArrow`, an RDD as the records it holds through
`mapPartitions`; the one Spark job runs in a thread of its own under a tag of its own, so that it can be cancelled
without touching anything else.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from py4j.protocol import Py4JError
from pyspark import RDD, InheritableThread, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType, UserDefinedType

from keraunos.data.arrow_types import IMAGE_FIELDS
from keraunos.errors import ClusterError, JobError, WorkerError
from keraunos.job.saving import Checkpoints
from keraunos.job.training_job import TrainingJob
from keraunos.launch import preflight
from keraunos.launch.attempts import saved, until_whole
from keraunos.launch.callbacks import check_callbacks
from keraunos.launch.fit import Fit
from keraunos.launch.gang import ledger_of
from keraunos.launch.hadoop_checkpoints import folder_of
from keraunos.launch.hooks import Hooks
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.spark_task import RESULT_SCHEMA, serve_slice, train_partition, train_records
from keraunos.launch.training_result import TrainingResult
from keraunos.worker.memory import after_kill

logger = logging.getLogger(__name__)

_environment_lock = threading.RLock()


def fit(
    job: TrainingJob,
    data: DataFrame | RDD[Any],
    *,
    custom_objects: Mapping[str, Any] | None = None,
    callbacks: Sequence[Any] = (),
    hooks: Sequence[Hooks] = (),
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
    goes, and goes on from there when this is called again.
    """
    check_callbacks(callbacks)
    context = _context_of(data)
    cluster = preflight.survey(context, job, host)
    if isinstance(data, RDD):
        preflight.check_partitions(data.getNumPartitions(), job)
    if job.memory_budget is None:
        job = replace(job, memory_budget=cluster.memory_budget)
    with saved(job, checkpoints, lambda path: folder_of(context, path)) as saving:

        def attempt() -> TrainingResult:
            with Fit.open(
                job,
                host=cluster.host,
                custom_objects=custom_objects,
                callbacks=callbacks,
                hooks=hooks,
                verbose=verbose,
                memory=memory,
                saving=saving,
            ) as opened:
                return _launched(job, data, opened, context, cluster, custom_objects)

        servers = job.servers if isinstance(job.servers, int) else 0
        with ledger_of(context).hold(min(job.workers + servers, cluster.slots), cluster.slots):
            return until_whole(attempt, saving)


def _launched(
    job: TrainingJob,
    data: DataFrame | RDD[Any],
    opened: Fit,
    context: SparkContext,
    cluster: preflight.Cluster,
    custom_objects: Mapping[str, Any] | None,
) -> TrainingResult:
    """Start the tasks and follow them to the end."""
    servers = job.servers if isinstance(job.servers, int) else 0
    place = {"threads": cluster.task_cpus, "workers_on_host": cluster.workers_on_host}
    with worker_environment(context, job.model.backend, fresh=cluster.has_devices):
        # Made in here: Spark notes the workers' environment when a function is wrapped.
        train = _training(data, job, opened.connection, place, custom_objects)
        slices = _one_slice_a_task(context, opened.connection, servers) if servers else None
    with SparkJobs(context, job.workers, servers) as jobs:
        if slices is not None:
            # Their slots first: workers that took them all would wait for servers that cannot start.
            jobs.run(slices.count)
            opened.await_servers(jobs)
        jobs.run(train)
        return opened.follow(jobs)


def total_slots(spark: SparkSession) -> int:
    """How many tasks Spark can run at once."""
    return preflight.total_slots(spark.sparkContext)


def partitions_of(dataframe: DataFrame) -> int | None:
    """How many partitions the DataFrame will have, where that can be known without computing it."""
    plan = dataframe._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() != "AdaptiveSparkPlanExec":
        return int(plan.execute().getNumPartitions())
    # Adaptive execution may change the number, but never one that the user asked for with repartition(n).
    top = dataframe._jdf.queryExecution().optimizedPlan()
    while top.getClass().getSimpleName() in ("Project", "MapInArrow"):
        top = top.child()
    if top.getClass().getSimpleName() in ("Repartition", "RepartitionByExpression") and top.shuffle():
        return int(top.numPartitions())
    return None


def columns_of(dataframe: DataFrame, job: TrainingJob) -> DataFrame:
    """Only the job's columns, vectors as plain structs: what a worker reads."""
    fields = {field.name: field for field in dataframe.schema.fields}
    return dataframe.select(*(read_column(fields[name]).alias(name) for name in job.columns.names))


def read_column(field: Any) -> Any:
    """A column as it travels to Python: vectors as plain structs, images without what no model reads."""
    column = sf.col(_quoted(field.name))
    if isinstance(field.dataType, UserDefinedType):
        return sf.unwrap_udt(column)
    if isinstance(field.dataType, StructType) and set(field.dataType.names) > set(IMAGE_FIELDS):
        return column.dropFields(*(name for name in field.dataType.names if name not in IMAGE_FIELDS))
    return column


@contextmanager
def worker_environment(spark: SparkSession | SparkContext, backend: str, *, fresh: bool = False) -> Iterator[None]:
    """Python functions that Spark wraps in here run in workers that are set up for `backend`.

    Spark keeps its Python workers by their environment variables: jobs that ask for the same ones find them warm,
    and with `fresh` a job gets workers of its own.
    """
    context = spark if isinstance(spark, SparkContext) else spark.sparkContext
    threads = preflight.setting(context, "spark.task.cpus") or "1"
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
    with _environment_lock:
        before, python = dict(context.environment), context.pythonExec
        if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            # On one machine the driver's own interpreter is the one that has the packages, activated or not.
            context.pythonExec = sys.executable
        # What the user set for the executors stays.
        context.environment.update({name: value for name, value in wanted.items() if name not in before})
        try:
            yield
        finally:
            context.environment.clear()
            context.environment.update(before)
            context.pythonExec = python


def translated(error: BaseException) -> BaseException:
    """A Spark failure in words that help; workers that could speak have told their own error already."""
    text = str(error)
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if missing:
        return ClusterError(
            f"The executors cannot import {missing.group(1)!r}. Install the driver's packages on every executor, point "
            "PYSPARK_PYTHON to the Python that has them, or ship an environment with spark.archives."
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return ClusterError(
            f"The executors run another Python than the driver: {_excerpt(text, 'PYTHON_VERSION_MISMATCH')}. Set "
            "PYSPARK_PYTHON to the same version on both sides."
        )
    return WorkerError(f"The Spark job failed: {_excerpt(text)}{after_kill(text)}")


class SparkJobs:
    """The Spark jobs of one fit, each in its own thread, under one tag; leaving the context ends them."""

    def __init__(self, context: SparkContext, workers: int, servers: int = 0) -> None:
        self._context = context
        self._tasks = workers + servers
        self._tag = f"keraunos-{uuid.uuid4().hex}"
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._abandoned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Workers that wait for the server end by themselves at once. What is left then is one that hangs, was left out,
        # or was started again when nobody needed it any more.
        self._join(0.5 if kind is not None else 5.0)
        if not self.ended() and not _is_stopped(self._context):
            self._context.cancelJobsWithTag(self._tag)
        self._join(30.0)

    def run(self, action: Callable[[], Any]) -> None:
        """Start a Spark job; what it gives is not looked at."""
        thread = InheritableThread(target=self._run, args=(action,), name="keraunos-spark-job", daemon=True)
        thread.start()
        self._threads.append(thread)

    def check(self) -> None:
        """Raise what made a Spark job fail."""
        if not self._errors:
            return
        if _is_stopped(self._context):
            raise ClusterError(
                "The SparkContext was stopped while a fit ran, and its workers went with it. Expected: one that lives "
                "until `fit` has returned. Look for a spark.stop() in another thread, or for the end of Spark's JVM in "
                "the driver's log."
            ) from self._errors[0]
        raise translated(self._errors[0]) from self._errors[0]

    def ended(self) -> bool:
        """Whether all Spark jobs are over."""
        return not any(thread.is_alive() for thread in self._threads)

    def advice(self) -> str:
        """What a user may do when workers do not come."""
        return (
            f"Other Spark jobs may hold the slots, or executors are missing: see that {self._tasks} tasks can run at "
            "once, or lower numWorkers."
        )

    def abandon(self, rank: int) -> None:
        """The training goes on without this rank: its task, which may never get a slot, is cancelled in the end."""
        logger.info("the task of rank %d is not waited for", rank)
        self._abandoned = True

    def _join(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))

    def _run(self, action: Callable[[], Any]) -> None:
        self._context.addJobTag(self._tag)
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - it is raised by the thread that follows the fit
            self._errors.append(error)


def _is_stopped(context: SparkContext) -> bool:
    """Whether Spark was stopped, by whomever, or is gone with its JVM."""
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def _context_of(data: Any) -> SparkContext:
    if isinstance(data, RDD):
        return data.context
    if isinstance(data, DataFrame):
        return data.sparkSession.sparkContext
    raise JobError(f"The rows must come as a DataFrame or an RDD. Received: {type(data).__name__}.")


def _training(
    data: DataFrame | RDD[Any],
    job: TrainingJob,
    connection: Mapping[str, Any],
    place: Mapping[str, Any],
    custom_objects: Mapping[str, Any] | None,
) -> Any:
    """The Spark action, a callable, that trains every rank; the functions it needs are wrapped here."""
    if isinstance(data, DataFrame):
        arrow_task = functools.partial(train_partition, connection, place, custom_objects)
        return _one_partition_a_worker(data, job).mapInArrow(arrow_task, RESULT_SCHEMA).collect
    task = functools.partial(train_records, connection, place, custom_objects, job.columns.names)
    parts = data if data.getNumPartitions() == job.workers else data.coalesce(job.workers)
    # The Java RDD is made at once, because it is then that Spark notes the environment of the Python workers.
    return parts.mapPartitions(task)._jrdd.count


def _one_slice_a_task(context: Any, connection: Mapping[str, Any], servers: int) -> Any:
    """Tasks that each host one slice of the parameters until the training is over.

    The Java RDD is made at once, because it is then that Spark notes the environment of the Python workers.
    """
    task = functools.partial(serve_slice, connection)
    return context.parallelize(range(servers), servers).mapPartitions(task)._jrdd


def _one_partition_a_worker(dataframe: DataFrame, job: TrainingJob) -> DataFrame:
    """What the workers read, in as many partitions as there are workers."""
    selected = columns_of(dataframe, job)
    return selected if partitions_of(selected) == job.workers else selected.repartition(job.workers)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _excerpt(text: str, marker: str = "") -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    chosen = [line for line in lines if marker in line] if marker else lines
    return " ".join(chosen[:6])[:1500]
