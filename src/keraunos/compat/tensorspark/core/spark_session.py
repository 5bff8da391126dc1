"""A TensorFlow session whose training runs on Spark: TensorSpark's `SparkSession`. Runs on the driver.

The session given to it stays the user's own. A run with an RDD takes its graph and its values, trains them on the RDD's
partitions, and puts the trained values back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from keraunos.compat.tensorspark import checkpoints, translate
from keraunos.compat.tensorspark.rules import plan_with
from keraunos.errors import JobError
from keraunos.launch import spark as launch
from keraunos.learners.graph_source import values_into_session
from keraunos.session.registry import session_of
from keraunos.telemetry.history import History

_DESCRIPTION = "spark.job.description"


class SparkSession:
    """Runs fetches of a TensorFlow session over the partitions of an RDD.

    Args:
        spark_context: the SparkContext.
        session: a `tf.Session` with initialised variables; trained values are put into it.
        user: who runs it, for Spark's description of the job.
        name: what it is called there; also a tag of the job, for `cancelJobsWithTag`.
        target: must be left empty: the session is made by the caller.
        server_host: the address of this machine that executors reach the parameters at; `localhost` stands for the one
            that Spark's own driver is reached at.
        server_port: the port that the parameters are served on; `None` for any free one.
        graph: the session's graph, if given at all.
        config: must be omitted: the session has its own, and the workers use the resources of their Spark task.
        sync_interval: after how many batches a worker exchanges parameters.
        batch_size: rows that a worker takes in a step.
    """

    def __init__(
        self,
        spark_context: Any,
        session: Any,
        user: str | None = "",
        name: str = "",
        target: str = "",
        server_host: str = "localhost",
        server_port: int | None = 10080,
        graph: Any = None,
        config: Any = None,
        sync_interval: int = 3,
        batch_size: int = 10000,
    ) -> None:
        translate.check_session(session, target=target, graph=graph, config=config)
        self._spark = session_of(spark_context)
        self._session = session
        self._user = user or ""
        self._name = name or ""
        self._options = translate.SessionOptions(server_host, server_port, sync_interval, batch_size)
        self._history: History | None = None
        self._runs = 0
        self._kept = False
        self._closed = False
        self._entered = ExitStack()

    def run(
        self,
        fetches: Any,
        feed_rdd: Any = None,
        feed_name_list: Sequence[Any] | None = None,
        param_list: Sequence[Any] | None = None,
        feed_dict: Mapping[Any, Any] | None = None,
        weight_combiner: Any = None,
        shuffle_within_partition: bool = False,
        options: Any = None,
        run_metadata: Any = None,
        server_reusable: bool = False,
    ) -> Any:
        """Run `fetches` here, or, with an RDD, for every batch of each of its partitions.

        With `feed_rdd` it is one pass over the rows; the trained values of `param_list` are in the session afterwards,
        and nothing is returned.

        Args:
            fetches: an operation or a tensor, or a list or dict of them, as in `tf.Session.run`.
            feed_rdd: rows as tuples with one value for each of `feed_name_list`; one worker per partition.
            feed_name_list: the names of the placeholders that the values are fed to.
            param_list: the variables that are shared. All others start from the session's values on each worker and
                stay there: an optimizer's slots, a step counter.
            feed_dict: without an RDD as in `tf.Session.run`; with one, values that are the same for every batch.
            weight_combiner: how a worker's weights become part of the shared ones; by default the moving average
                over the number of partitions.
            shuffle_within_partition: take each partition's rows in a random order; otherwise in a fixed order.
            options: as in `tf.Session.run`; only without an RDD.
            run_metadata: the same.
            server_reusable: count this run's contributions as taken by the server of the next one.
        """
        self._check_open()
        if feed_rdd is None:
            translate.check_plain_run(feed_name_list, param_list, weight_combiner)
            return self._session.run(fetches, feed_dict, options, run_metadata)
        translate.check_spark_run(feed_rdd, options, run_metadata)
        fed = translate.fed_graph(self._session, fetches, feed_name_list, param_list, feed_dict)
        with plan_with(weight_combiner, self._options.sync_interval, begun=self._kept) as plan:
            job = translate.job_of(
                fed,
                self._options,
                plan,
                workers=feed_rdd.getNumPartitions(),
                shuffle=bool(shuffle_within_partition),
                seed=self._runs,
            )
            with self._described(), translate.words_of_the_caller():
                result = launch.fit(job, feed_rdd, host=self._options.host)
        values_into_session(self._session, result.archive)
        self._history = result.history
        self._runs += 1
        self._kept = bool(server_reusable)
        return None

    @property
    def history(self) -> History | None:
        """The measures of the last run over an RDD: the means of the scalar tensors among its fetches."""
        return self._history

    def get_session(self) -> Any:
        """Returns the TensorFlow session, with the values that the last run led to."""
        return self._session

    def broadcast_session(
        self, session: Any = None, user: str | None = None, filename: str = "", base_dir: str = ""
    ) -> tuple[str, str, str]:
        """Save the session under a new name in `spark.hdfs.dir`; returns the result of `save_session_hdfs`.

        No run needs it: graph and values travel to the workers with the job.
        """
        name = filename or f"session_{self._name}_{time.time_ns() // 1_000_000}"
        return self.save_session_hdfs(self._session if session is None else session, user, name, base_dir)

    def save_session_hdfs(
        self, session: Any, user: str | None, filename: str, base_dir: str = ""
    ) -> tuple[str, str, str]:
        """Save a session as TensorFlow's checkpoint in a folder of any Hadoop file system.

        Args:
            session: the `tf.Session`.
            user: must be the one that Spark runs as, or empty: files are written as that user.
            filename: the checkpoint's name.
            base_dir: the folder; `spark.hdfs.dir` by default.

        Returns:
            The paths of the checkpoint, of its MetaGraph and of the description of its saver.
        """
        return checkpoints.save(self._spark, session, user, filename, base_dir)

    def stop_param_server(self) -> None:
        """Make the next run start with a new server. There is nothing to stop: a run ends what it started."""
        self._kept = False

    def close(self) -> None:
        """Close the TensorFlow session; nothing can be run after it."""
        self.stop_param_server()
        if not self._closed:
            self._closed = True
            self._session.close()

    @staticmethod
    def reset(target: str, containers: Sequence[str] | None = None, config: Any = None) -> None:
        """Reset the resource containers of a TensorFlow cluster, as `tf.Session.reset` does."""
        import tensorflow as tf

        tf.compat.v1.Session.reset(target, containers, config)

    def __enter__(self) -> Self:
        self._check_open()
        self._entered.enter_context(self._session.graph.as_default())
        self._entered.enter_context(self._session.as_default())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise JobError("The session must be open. Received: one that was closed. Make a new one around a session.")

    @contextmanager
    def _described(self) -> Iterator[None]:
        """Spark's own pages show the run by its name and user, and can cancel it by its name."""
        spark = self._spark
        before = spark.local_property(_DESCRIPTION)
        name = self._name or "TensorSpark"
        spark.set_local_property(_DESCRIPTION, f"{name} of {self._user}" if self._user else name)
        tag = self._name.replace(",", " ")
        added = bool(tag) and tag not in spark.tags()
        if added:
            spark.add_tag(tag)
        try:
            yield
        finally:
            if added:
                spark.remove_tag(tag)
            spark.set_local_property(_DESCRIPTION, before)
