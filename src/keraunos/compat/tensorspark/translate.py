"""From TensorSpark's arguments to a training job. Runs on the driver.

Errors in the arguments are found here, before anything starts; errors in the graph are found by
`graph_source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from keraunos.errors import ClusterError, JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob, checked_ports
from keraunos.learners.graph_source import graph_source

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")

# What the engine calls the arguments of `SparkSession` and `run`.
_ARGUMENTS = {
    "inputs`, `targets` or `feeds": "feed_name_list` or `feed_dict",
    "inputs` and `targets": "feed_name_list",
    "train_op": "fetches",
    "variables": "param_list",
    "feeds": "feed_dict",
    "serverPorts": "server_port",
    "host": "server_host",
}


@dataclass(frozen=True)
class SessionOptions:
    """The arguments of a SparkSession, for all its runs."""

    server_host: str
    server_port: int | None
    sync_interval: int
    batch_size: int

    def __post_init__(self) -> None:
        for name in ("sync_interval", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise JobError(f"`{name}` must be a whole number of at least 1. Received: {value!r}.")
        if not isinstance(self.server_host, str) or not self.server_host:
            raise JobError(
                "`server_host` must be the name or address of this machine that executors reach it at, or 'localhost' "
                f"for the one that Spark's driver has. Received: {self.server_host!r}."
            )
        if self.server_port is not None:
            checked_ports((self.server_port, self.server_port), "server_port")

    @property
    def host(self) -> str | None:
        """The address to serve at, or `None` for that of Spark's driver.

        Executors on other machines could not reach a server at `localhost`, the old default, so that means the driver.
        """
        return None if self.server_host in _THIS_MACHINE else self.server_host

    @property
    def ports(self) -> tuple[int, int] | None:
        """The one port to serve on, as a range."""
        return None if self.server_port is None else (self.server_port, self.server_port)


@dataclass(frozen=True)
class FedGraph:
    """A graph that trains, and what of a record is fed where."""

    source: ModelSource
    slots: tuple[Slot, ...]


@contextmanager
def words_of_the_caller() -> Iterator[None]:
    """Errors of the engine name the arguments that were given here."""
    try:
        yield
    except (JobError, ClusterError) as error:
        text = re.sub(r"`inputs\[.*?\]`", "`feed_name_list`", str(error))
        for theirs, ours in _ARGUMENTS.items():
            text = text.replace(f"`{theirs}`", f"`{ours}`")
        raise type(error)(text) from error


def check_session(session: Any, *, target: str, graph: Any, config: Any) -> None:
    """Refuse what is no session, and what would have been for a session of our own."""
    if not callable(getattr(session, "run", None)) or not hasattr(session, "graph"):
        raise JobError(
            f"`session` must be a TensorFlow session with initialised variables. Received: {session!r}. Make one with "
            "`tf.Session()` and run `tf.initialize_all_variables()` in it."
        )
    if target:
        raise JobError(
            f"`target` must be left empty: the session that is given says where it runs. Received: {target!r}. Use "
            "`tf.Session(target)` for the session."
        )
    if graph is not None and graph is not session.graph:
        raise JobError(
            "`graph` must be the session's own graph, or left out. Received: another one. Use `tf.Session(graph=graph)`"
            " for the session."
        )
    if config is not None and (not hasattr(config, "ByteSize") or config.ByteSize()):
        raise JobError(
            "`config` must be left out: on executors a session has the cores and the GPUs that Spark gives to a task, "
            "by spark.task.cpus and spark.task.resource.gpu.amount. For the driver use `tf.Session(config=config)`. "
            f"Received: {config!r}."
        )


def check_plain_run(feed_name_list: Any, param_list: Any, weight_combiner: Any) -> None:
    """Refuse what has no meaning without an RDD."""
    given = {"feed_name_list": feed_name_list, "param_list": param_list, "weight_combiner": weight_combiner}
    for name, value in given.items():
        if value is not None:
            raise JobError(
                f"`{name}` must come with `feed_rdd`, the rows to train on. Received: no `feed_rdd`. For a run on the "
                "driver give `feed_dict`."
            )


def check_spark_run(feed_rdd: Any, options: Any, run_metadata: Any) -> None:
    """Refuse what a run over an RDD cannot use."""
    if not callable(getattr(feed_rdd, "getNumPartitions", None)):
        raise JobError(
            "`feed_rdd` must be an RDD of tuples, one value for each of `feed_name_list`. Received: "
            f"{type(feed_rdd).__name__}. Of a DataFrame take `df.rdd.map(tuple)`."
        )
    for name, value in {"options": options, "run_metadata": run_metadata}.items():
        if value is not None:
            raise JobError(
                f"`{name}` must be left out with `feed_rdd`: it describes a single `Session.run`. Received: {value!r}. "
                "Run one batch on the driver with `feed_dict` to trace it."
            )


def fed_graph(
    session: Any, fetches: Any, feed_name_list: Any, param_list: Any, feed_dict: Mapping[Any, Any] | None
) -> FedGraph:
    """Returns the session's graph and values, with the fetches as a training step and the placeholders as slots."""
    names = _listed("feed_name_list", feed_name_list, "the placeholders that the values of a record are fed to")
    variables = _listed("param_list", param_list, "the variables that workers share")
    feeds = [_name_of(name) for name in names]
    twice = next((name for name in feeds if feeds.count(name) > 1), None)
    if twice is not None:
        raise JobError(f"`feed_name_list` must name each placeholder once. Received: {twice!r} more than once.")
    fetched = list(_flat(fetches))
    if not fetched:
        raise JobError(f"`fetches` must hold an operation that trains. Received: {fetches!r}.")
    with words_of_the_caller():
        source = graph_source(
            session,
            inputs=dict(zip(feeds, names, strict=True)),
            train_op=fetched,
            # What a step runs is what was fetched, as in `Session.run`: nothing is added to it.
            updates=(),
            variables=variables,
            feeds=dict(feed_dict or {}),
            metrics={_metric_name(each): each for each in fetched if _is_scalar(each)},
        )
    return FedGraph(source, tuple(_slot(session.graph, name) for name in feeds))


def job_of(
    fed: FedGraph, options: SessionOptions, plan: ExchangePlan, *, workers: int, shuffle: bool, seed: int
) -> TrainingJob:
    """Returns the job of one pass over the rows, a worker for each partition."""
    if workers < 1:
        raise JobError("`feed_rdd` must have at least one partition. Received: an RDD without any.")
    return TrainingJob(
        model=fed.source,
        # The graph decides what NaN means.
        columns=Columns(features=fed.slots, allow_nan=True),
        schedule=Schedule(epochs=1, batch_size=options.batch_size, seed=seed, shuffle=shuffle, remainder="join"),
        exchange=plan,
        workers=workers,
        ports=options.ports,
    )


def _listed(argument: str, value: Any, what: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or not value:
        raise JobError(f"`{argument}` must be a list of {what}, at least one. Received: {value!r}.")
    return list(value)


def _flat(fetches: Any) -> Iterator[Any]:
    if isinstance(fetches, Mapping):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for each in fetches:
            yield from _flat(each)
    elif fetches is not None:
        yield fetches


def _name_of(tensor: Any) -> str:
    """Returns the name of a placeholder that was given by its tensor or by its name, `x:0` or `x`."""
    name = str(getattr(tensor, "name", tensor))
    return name if ":" in name else f"{name}:0"


def _slot(graph: Any, name: str) -> Slot:
    shape = graph.get_tensor_by_name(name).shape
    if shape.rank is None:
        return Slot(name, (name,))
    return Slot(name, (name,), shape=tuple(shape.as_list()[1:]))


def _is_scalar(fetched: Any) -> bool:
    """Returns whether it is a number that can be averaged over batches."""
    shape, dtype = getattr(fetched, "shape", None), getattr(fetched, "dtype", None)
    return shape is not None and dtype is not None and shape.rank == 0 and bool(dtype.is_floating)


def _metric_name(tensor: Any) -> str:
    return str(tensor.name).partition(":")[0]
