"""SparkFlow's `HogwildSparkModel`: training on an RDD, with every argument. Runs on the driver."""
# ruff: noqa: N999 - programs import it under this name

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.sparkflow.losses import print_loss
from keraunos.compat.sparkflow.optimizers import rule_of_optimizer
from keraunos.compat.sparkflow.translate import Training, address_of, workers_of
from keraunos.errors import JobError
from keraunos.job.columns import Columns, Slot
from keraunos.launch.kept_rows import kept
from keraunos.ml import conversion
from keraunos.session.registry import session_of

logger = logging.getLogger(__name__)

_FEATURES, _LABELS = Slot(None, ("features",)), Slot(None, ("label",))


class HogwildSparkModel:
    """Trains a TensorFlow graph on an RDD whose workers send gradients to a parameter server on the driver.

    Args:
        tensorflowGraph: the graph as JSON, as graph_utils.build_graph gives it.
        iters: how many times a worker goes through its rows; with `mini_stochastic_iters`, draws batches.
        tfInput: the name of the placeholder for the features.
        tfLabel: the name of the placeholder for the labels; `None` to learn from the features alone.
        optimizer: an optimizer of tf.train, one of SparkFlow's ten names, or what `build_optimizer` returned.
        master_url: the driver's host and port, where the server listens; by default where Spark's driver does.
        serverStartup: seconds; the server is ready before the first worker starts, and the program does not wait for
            it.
        acquire_lock: whether gradients are applied one after the other, and not all at once without locks.
        mini_batch: rows per step; below 1 all rows of a partition.
        mini_stochastic_iters: how many batches, drawn at random, make an iteration; below 1 every row is used once.
        shuffle: whether each iteration takes the rows in another order.
        verbose: above 0, the driver prints each iteration's loss on each partition.
        partition_shuffles: how many times to train for `iters` iterations, with the rows redistributed in between.
        loss_callback: called on the driver with the loss, the iteration and the partition's number after each
            iteration, in the order of a partition's iterations.
        port: the port that the server listens on; by default 5000, or the next free one.
    """

    def __init__(
        self,
        tensorflowGraph: str | None = None,
        iters: int = 1000,
        tfInput: str | None = None,
        tfLabel: str | None = None,
        optimizer: Any = None,
        master_url: str | None = None,
        serverStartup: float = 8,
        acquire_lock: bool = False,
        mini_batch: int = -1,
        mini_stochastic_iters: int = -1,
        shuffle: bool = True,
        verbose: int = 0,
        partition_shuffles: int = 1,
        loss_callback: Callable[[float, int, int], Any] | None = None,
        port: int | None = None,
    ) -> None:
        from keraunos.compat.sparkflow.training import prepare

        _check_startup(serverStartup)
        if loss_callback is not None and not callable(loss_callback):
            raise JobError(
                f"`loss_callback` must be a function of loss, iteration and partition_id. Received: {loss_callback!r}."
            )
        host, ports = address_of(master_url, port)
        self._training = Training(
            graph=tensorflowGraph or "",
            tf_input=_tensor("tfInput", tfInput),
            tf_label=None if tfLabel is None else _tensor("tfLabel", tfLabel),
            rule=rule_of_optimizer(optimizer),
            iters=conversion.whole_number("iters", at_least=1)(iters),
            mini_batch=conversion.whole_number("mini_batch")(mini_batch),
            mini_stochastic_iters=conversion.whole_number("mini_stochastic_iters")(mini_stochastic_iters),
            acquire_lock=conversion.boolean("acquire_lock")(acquire_lock),
            shuffle=conversion.boolean("shuffle")(shuffle),
            partition_shuffles=conversion.whole_number("partition_shuffles", at_least=1)(partition_shuffles),
            ports=ports,
            host=host,
        )
        self._listeners = [*([print_loss] if verbose else []), *([loss_callback] if loss_callback else [])]
        self._prepared = prepare(self._training)

    def train(self, rdd: Any) -> list[npt.NDArray[Any]]:
        """Train on an RDD of (features, label), or of features alone; the values of the trainable variables."""
        from keraunos.compat.sparkflow.training import train

        training, prepared = self._training, self._prepared
        partitions = rdd.getNumPartitions()
        workers = workers_of(None, partitions, session_of(rdd).slots())
        columns = Columns((_FEATURES,), () if training.tf_label is None else (_LABELS,))

        def rows(turn: int) -> Any:
            return rdd if turn == 0 else _dealt_out_anew(rdd, workers, turn)

        # Every turn reads all rows.
        with kept(rdd) if training.partition_shuffles > 1 else nullcontext():
            model = train(training, prepared, columns, rows, workers, self._listeners)
        return [np.array(value) for value in list(model.values.values())[: prepared.trainable]]

    def stop_server(self) -> None:
        """Nothing is left to stop: the parameter server lives and ends with `train`."""

    @staticmethod
    def determine_master(port: int) -> str:
        """Returns the address of this machine with a port, as `master_url` takes it."""
        import socket

        try:
            return f"{socket.gethostbyname(socket.gethostname())}:{port}"
        except OSError:
            return f"localhost:{port}"


def _dealt_out_anew(rdd: Any, workers: int, turn: int) -> Any:
    """Returns the rows in other partitions, which depend on their places and the turn alone."""
    return rdd.zipWithUniqueId().map(lambda pair: (hash((pair[1], turn)), pair[0])).partitionBy(workers).values()


def _tensor(name: str, value: Any) -> str:
    from keraunos.compat.sparkflow.params import tensor_name

    checked: str = tensor_name(name)(value)
    return checked


def _check_startup(seconds: Any) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise JobError(f"`serverStartup` must be a number of seconds of at least 0. Received: {seconds!r}.")
    logger.info(
        "serverStartup=%s: the server is ready before the first worker starts; the argument is ignored.", seconds
    )
