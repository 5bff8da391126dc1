"""From SparkFlow's training arguments to a training job. Runs on the driver; nothing here is live.

Every gradient goes to the server at once, and the optimizer there applies it: one at a time with `acquire_lock`, all
at once and without locks otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keraunos.compat.sparkflow.optimizers import locks
from keraunos.errors import JobError
from keraunos.job.columns import Columns
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob

logger = logging.getLogger(__name__)

DEFAULT_PORT = 5000
# If no port was asked for, the next free one of these is taken.
DEFAULT_PORTS = (DEFAULT_PORT, DEFAULT_PORT + 99)

# No partition has more rows than this, so that a batch of it is the whole partition.
_ALL_ROWS = 1 << 30


@dataclass(frozen=True)
class Training:
    """The arguments that SparkFlow's estimator and its HogwildSparkModel share.

    Attributes:
        graph: the graph in JSON.
        tf_input: the placeholder of the features; `tf_label` that of the labels, `None` to learn without any.
        rule: the optimizer on the server.
        iters: how many times a worker goes through its rows, or draws batches.
        mini_batch: rows per step; below 1 all of a partition.
        mini_stochastic_iters: how many batches are drawn in an iteration; below 1 every row is used once.
        acquire_lock: whether gradients are applied one after the other.
        shuffle: whether each iteration takes the rows in another order.
        partition_shuffles: how many times to train, the rows redistributed in between.
        ports: the first and the last port that the server may listen on.
        host: the address that it listens on; `None` for Spark's own choice.
        tf_output: the tensor that will predict, and `tf_dropout` the placeholder of dropout.
    """

    graph: str
    tf_input: str
    tf_label: str | None
    rule: RuleSpec
    iters: int = 1000
    mini_batch: int = 128
    mini_stochastic_iters: int = -1
    acquire_lock: bool = False
    shuffle: bool = True
    partition_shuffles: int = 1
    ports: tuple[int, int] = DEFAULT_PORTS
    host: str | None = None
    tf_output: str | None = None
    tf_dropout: str | None = None


def plan_of(training: Training) -> ExchangePlan:
    """How workers share gradients."""
    locked = training.acquire_lock or locks(training.rule)
    return ExchangePlan("gradients", 1, "asynchronous" if locked else "hogwild", training.rule)


def schedule_of(training: Training, turn: int = 0) -> Schedule:
    """The schedule of a worker in one turn; rows are redistributed between turns."""
    drawn = training.mini_stochastic_iters
    if turn == 0 and not training.shuffle and training.mini_batch >= 1 > drawn:
        logger.warning(
            "Without shuffling, every iteration takes a partition's rows in one order, which follows from what they "
            "hold and is not that of the partition."
        )
    return Schedule(
        epochs=training.iters,
        batch_size=training.mini_batch if training.mini_batch >= 1 else _ALL_ROWS,
        seed=turn,
        shuffle=training.shuffle,
        remainder="join",
        draws=drawn if drawn >= 1 else None,
    )


def job_of(training: Training, model: ModelSource, columns: Columns, workers: int, turn: int = 0) -> TrainingJob:
    """Returns the whole job."""
    return TrainingJob(
        model=model,
        columns=columns,
        schedule=schedule_of(training, turn),
        exchange=plan_of(training),
        workers=workers,
        ports=training.ports,
    )


def workers_of(asked: int | None, partitions: int | None, slots: int) -> int:
    """Returns how many workers train: one per partition, but no more than were asked for and than can run at once.

    Partitions that nothing is known of (a plan that Spark may still change) set no limit.
    """
    return max(1, min(each for each in (asked, partitions, slots) if each is not None))


def address_of(master_url: Any, port: int | None) -> tuple[str | None, tuple[int, int]]:
    """Returns the host and the ports that `master_url` and `port` ask for together."""
    ports = DEFAULT_PORTS if port is None else (port, port)
    if master_url is None:
        return None, ports
    host, separator, number = str(master_url).rpartition(":")
    if not separator or not host or not number.isdigit():
        raise JobError(
            f"`master_url` must be the driver's host and port, such as '10.0.0.1:5000'. Received: {master_url!r}. "
            "Leave it out to listen where Spark's driver does."
        )
    if port is not None and port != int(number):
        raise JobError(
            f"`master_url` and `port` must name the same port. Received: {master_url!r} and {port!r}. Leave one out."
        )
    return host, (int(number), int(number))


def check_supervision(values: Mapping[str, str | None]) -> None:
    """Refuse a label on one side only: a column without a placeholder, or a placeholder without a column."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) == 1:
        (missing,) = set(values) - set(given)
        raise JobError(
            f"`{given[0]}` and `{missing}` must be set together, or neither for a model without labels. Received: "
            f"{given[0]}={values[given[0]]!r} alone."
        )
