"""The session of classic Spark, whose driver has a JVM beside it. Runs on the driver."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark import RDD, Broadcast, InheritableThread, SparkContext, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from keraunos.session import classic_jobs, classic_status
from keraunos.session.hadoop_files import HadoopFolder, files_at
from keraunos.session.session import Session
from keraunos.session.task_status import Tasks

_environment_lock = threading.RLock()


class ClassicSession(Session):
    """The application of a SparkContext; with a SparkSession, its Hadoop settings are on top of the context's."""

    def __init__(self, context: SparkContext, spark: SparkSession | None = None) -> None:
        # Both return objects of the JVM, which have no declared types.
        self._context: Any = context
        self._driver: Any = context if spark is None else spark

    @property
    def application(self) -> object:
        """The SparkContext."""
        return self._context

    @property
    def master(self) -> str:
        """Spark's master."""
        return str(self._context.master)

    @property
    def user(self) -> str:
        """The user that Spark runs as."""
        return str(self._context.sparkUser())

    @property
    def java_version(self) -> str:
        """The version of the driver's Java."""
        return str(self._context._jvm.System.getProperty("java.version"))

    def is_stopped(self) -> bool:
        """Returns whether Spark was stopped, by whomever, or is gone with its JVM."""
        try:
            return self._context._jsc is None or bool(self._scala.isStopped())
        except (Py4JError, OSError):
            return True

    def setting(self, name: str) -> str | None:
        """Returns a setting; asked for by itself, because `getConf` copies all of them one by one."""
        conf = self._scala.conf()
        return str(conf.get(name)) if conf.contains(name) else None

    def slots(self) -> int:
        """Returns how many tasks of the default resource profile can run at once."""
        scala = self._scala
        return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().resourceProfileFromId(0)))

    def hosts(self) -> int:
        """Returns how many hosts Spark's status tracker names."""
        return len({info.host() for info in self._scala.statusTracker().getExecutorInfos()})

    @property
    def parallelism(self) -> int:
        """The number of partitions that Spark makes by default."""
        return int(self._context.defaultParallelism)

    def largest_closure(self) -> int:
        """Returns spark.broadcast.UDFCompressionThreshold."""
        return int(self._context._jvm.PythonUtils.getBroadcastThreshold(self._context._jsc))

    def log_to_file(self, path: str) -> None:
        """Give Log4j's root logger a file, and a threshold to the appenders that it has."""
        classic_status.log_to_file(self._context._jvm, path)

    @contextmanager
    def environment(self, variables: Mapping[str, str]) -> Iterator[None]:
        """Functions that Spark wraps in here run in Python workers with these variables.

        Spark keeps its Python workers by their environment variables: jobs that ask for the same ones find them warm.
        """
        held = self._context.environment
        with _environment_lock:
            before = dict(held)
            # What the user set for the executors stays.
            held.update({name: value for name, value in variables.items() if name not in before})
            try:
                with self.own_python():
                    yield
            finally:
                held.clear()
                held.update(before)

    def choose_own_python(self) -> None:
        """From now on, functions that Spark wraps run in the driver's own interpreter, if this is the one to use."""
        if self.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            self._context.pythonExec = sys.executable

    @contextmanager
    def own_python(self) -> Iterator[None]:
        """Functions that Spark wraps in here run in the driver's own interpreter."""
        before = self._context.pythonExec
        self.choose_own_python()
        try:
            yield
        finally:
            self._context.pythonExec = before

    def broadcast(self, value: Any) -> Broadcast[Any]:
        """Returns a value that each executor is sent once."""
        sent: Broadcast[Any] = self._context.broadcast(value)
        return sent

    def accumulator(self, start: Any, how: Any) -> Any:
        """Returns a value that tasks add to."""
        return self._context.accumulator(start, how)

    def parallelize(self, values: Sequence[Any], partitions: int | None = None) -> RDD[Any]:
        """Values of the driver as an RDD."""
        made: RDD[Any] = self._context.parallelize(values, partitions)
        return made

    def union(self, rdds: Sequence[RDD[Any]]) -> RDD[Any]:
        """Returns the records of all RDDs."""
        together: RDD[Any] = self._context.union(list(rdds))
        return together

    def partition(self, rdd: RDD[Any], number: int) -> RDD[Any]:
        """Returns one partition of an RDD."""
        return classic_jobs.partition(rdd, number)

    def binary_files(self, path: str, partitions: int | None = None) -> RDD[Any]:
        """Pairs of address and content."""
        files: RDD[Any] = self._context.binaryFiles(path, partitions)
        return files

    def text_file(self, path: str) -> RDD[str]:
        """Returns the lines of a text file."""
        lines: RDD[str] = self._context.textFile(path)
        return lines

    def folder(self, path: str) -> HadoopFolder:
        """Returns a folder, or a file, by Hadoop's own FileSystem."""
        return HadoopFolder(self._driver, path)

    def files_at(self, path: str) -> list[str]:
        """Returns the addresses of the data files at a path."""
        return files_at(self._driver, path)

    def partitions_of(self, dataframe: DataFrame) -> int | None:
        """Returns the number in the plan."""
        return classic_jobs.partitions_of(dataframe)

    def pinned(self, rdd: RDD[Any]) -> RDD[Any]:
        """Returns the Java RDD as it is now."""
        return classic_jobs.pinned(rdd)

    def job(self, rdd: RDD[Any]) -> Callable[[], Any]:
        """Returns a count of the Java RDD as it is now."""
        return classic_jobs.job(rdd)

    def apart(self, rdd: RDD[Any]) -> tuple[Any, Callable[[int, Any], Any] | None]:
        """Returns the parts of pyspark's PipelinedRDD."""
        return classic_jobs.apart(rdd)

    def thread(self, target: Callable[[], Any], name: str) -> threading.Thread:
        """PySpark's InheritableThread."""
        thread: threading.Thread = InheritableThread(target=target, name=name, daemon=True)
        return thread

    def inherited(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """PySpark's `inheritable_thread_target`."""
        made: Callable[..., Any] = inheritable_thread_target(SparkSession.builder.getOrCreate())(function)
        return made

    def tags(self) -> set[str]:
        """Returns the tags of this thread's jobs."""
        return set(self._context.getJobTags())

    def add_tag(self, tag: str) -> None:
        """Tag this thread's jobs."""
        self._context.addJobTag(tag)

    def remove_tag(self, tag: str) -> None:
        """Do not tag them any more."""
        self._context.removeJobTag(tag)

    def cancel(self, tag: str) -> None:
        """Cancel the running jobs with a tag."""
        self._context.cancelJobsWithTag(tag)

    def local_property(self, name: str) -> str | None:
        """Returns a property of this thread's jobs."""
        value: str | None = self._context.getLocalProperty(name)
        return value

    def set_local_property(self, name: str, value: str | None) -> None:
        """Set or remove a property of this thread's jobs."""
        self._context.setLocalProperty(name, value)

    def tasks(self, tag: str, since: float) -> Tasks:
        """Returns the entries of Spark's status store for the jobs with a tag."""
        return classic_status.tasks_of(lambda: self._scala, tag, since)

    def computes_rows(self, tag: str, seconds: float) -> bool:
        """Returns whether a stage before the last one of these jobs runs, or ended a moment ago."""
        return classic_status.computes_rows(lambda: self._scala, tag, seconds)

    @property
    def _scala(self) -> Any:
        """Spark's own SparkContext, in the JVM."""
        return self._context._jsc.sc()
