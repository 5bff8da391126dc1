"""The interface of a session: all that Keraunos asks of Spark besides DataFrames and RDDs. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Thread
from typing import TYPE_CHECKING, Any

from keraunos.session.task_status import Tasks

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast
    from pyspark.sql import DataFrame

    from keraunos.session.hadoop_files import HadoopFolder


class Session(ABC):
    """One Spark application, as its driver sees it.

    Sessions are small and may be made at any time. They own nothing: the application belongs to the program that
    started it, and a session never stops it. Any thread may use a session. After the application was stopped only
    `is_stopped`, `application` and `master` may be asked.
    """

    # What the application is.

    @property
    @abstractmethod
    def application(self) -> object:
        """Hashable, and the same object for all sessions of one application and for no others."""

    @property
    @abstractmethod
    def master(self) -> str:
        """Spark's master, such as `local[2]` or `yarn`."""

    @property
    @abstractmethod
    def user(self) -> str:
        """The user that Spark runs as."""

    @property
    @abstractmethod
    def java_version(self) -> str:
        """The version of the driver's Java."""

    @abstractmethod
    def is_stopped(self) -> bool:
        """Returns whether Spark was stopped, by whomever, or is gone with its JVM."""

    @abstractmethod
    def setting(self, name: str) -> str | None:
        """Returns one of the application's settings, or `None` if it is not set."""

    @abstractmethod
    def slots(self) -> int:
        """Returns how many tasks can run at once now."""

    @abstractmethod
    def hosts(self) -> int:
        """Returns how many hosts the executors and the driver are on."""

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """The number of partitions that Spark makes by default."""

    @abstractmethod
    def largest_closure(self) -> int:
        """Returns how many bytes of pickled code travel with a task; Spark writes larger ones to a file."""

    @abstractmethod
    def log_to_file(self, path: str) -> None:
        """Write Spark's log, from INFO on, to a file, and only errors to the console."""

    # What Python workers are.

    @abstractmethod
    def environment(self, variables: Mapping[str, str]) -> AbstractContextManager[None]:
        """Functions that Spark wraps in here run in Python workers with these environment variables.

        Variables that the user has set for the executors keep their values. One thread at a time is in here.
        """

    @abstractmethod
    def choose_own_python(self) -> None:
        """From now on, functions that Spark wraps run in the driver's own interpreter, if this is the one to use.

        On one machine the driver's own interpreter is the one that has the packages, whether its environment is
        activated or not. On a cluster, and where PYSPARK_PYTHON is set, it stays the one that was chosen.
        """

    @abstractmethod
    def own_python(self) -> AbstractContextManager[None]:
        """Functions that Spark wraps in here run in the driver's own interpreter, as with `choose_own_python`."""

    # What tasks read.

    @abstractmethod
    def broadcast(self, value: Any) -> Broadcast[Any]:
        """Returns a value that is sent once to each executor; the caller may `destroy` it."""

    @abstractmethod
    def accumulator(self, start: Any, how: Any) -> Any:
        """Returns a value that tasks add to; `how` is pyspark's AccumulatorParam."""

    @abstractmethod
    def parallelize(self, values: Sequence[Any], partitions: int | None = None) -> RDD[Any]:
        """Values of the driver as an RDD."""

    @abstractmethod
    def union(self, rdds: Sequence[RDD[Any]]) -> RDD[Any]:
        """Returns the records of all RDDs, with the partitions of each."""

    @abstractmethod
    def partition(self, rdd: RDD[Any], number: int) -> RDD[Any]:
        """Returns one partition of an RDD, as an RDD."""

    @abstractmethod
    def binary_files(self, path: str, partitions: int | None = None) -> RDD[Any]:
        """Pairs of address and content, of the files at a path; `partitions` is the least number of partitions."""

    @abstractmethod
    def text_file(self, path: str) -> RDD[str]:
        """Returns the lines of a text file."""

    @abstractmethod
    def folder(self, path: str) -> HadoopFolder:
        """Returns a folder, or a file, on any Hadoop file system.

        Raises:
            Py4JError: where Hadoop does not know the path's file system.
        """

    @abstractmethod
    def files_at(self, path: str) -> list[str]:
        """The addresses of the data files at a path: a file, all files of a folder, or what a pattern matches."""

    # Jobs.

    @abstractmethod
    def partitions_of(self, dataframe: DataFrame) -> int | None:
        """Returns how many partitions a DataFrame will have, where that can be known without computing it."""

    @abstractmethod
    def pinned(self, rdd: RDD[Any]) -> RDD[Any]:
        """Returns the same records; what is mapped further does not run in the Python workers of `environment`.

        Call it within `environment`: Spark notes the environment here and not when the RDD was made.
        """

    @abstractmethod
    def job(self, rdd: RDD[Any]) -> Callable[[], Any]:
        """Returns a Spark job that computes all partitions of an RDD, started by the call.

        The environment is noted now.
        """

    @abstractmethod
    def apart(self, rdd: RDD[Any]) -> tuple[Any, Callable[[int, Any], Any] | None]:
        """Returns the parent of an RDD, and the Python functions that Spark would join with the next one, if any."""

    @abstractmethod
    def thread(self, target: Callable[[], Any], name: str) -> Thread:
        """Returns a daemon thread, not started yet, with the calling thread's local properties and tags."""

    @abstractmethod
    def inherited(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that runs with this thread's local properties and tags, whichever thread calls it."""

    @abstractmethod
    def tags(self) -> set[str]:
        """Returns the tags of the jobs that this thread starts."""

    @abstractmethod
    def add_tag(self, tag: str) -> None:
        """Tag the jobs that this thread starts from now on."""

    @abstractmethod
    def remove_tag(self, tag: str) -> None:
        """Do not tag them any more."""

    @abstractmethod
    def cancel(self, tag: str) -> None:
        """Cancel the running jobs with a tag. A job that is submitted later is not cancelled."""

    @abstractmethod
    def local_property(self, name: str) -> str | None:
        """Returns a property of the jobs that this thread starts."""

    @abstractmethod
    def set_local_property(self, name: str, value: str | None) -> None:
        """Set, or with `None` remove, a property of the jobs that this thread starts."""

    @abstractmethod
    def tasks(self, tag: str, since: float) -> Tasks:
        """Returns Spark's status of the jobs with a tag, and of executors lost since a time, in seconds of the epoch.

        Returns nothing known where Spark is gone or has forgotten them.
        """

    @abstractmethod
    def computes_rows(self, tag: str, seconds: float) -> bool:
        """Returns whether jobs with a tag do something that comes before their last stage, or did within these seconds.

        Only asked before any worker has come: a stage that is complete is not one of the workers'.
        """
