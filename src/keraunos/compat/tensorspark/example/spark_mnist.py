"""Softmax regression on MNIST, trained over the partitions of an RDD. Runs on the driver.

>>> import example.spark_mnist as mnist
>>> mnist.train(sc=sc, num_partition=2, num_epoch=2)
"""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorspark import idx_files
from keraunos.compat.tensorspark.checkpoints import HDFS_DIR
from keraunos.compat.tensorspark.core import spark_session as sps
from keraunos.compat.tensorspark.core.partitioner import RandomPartitioner
from keraunos.compat.tensorspark.example.softmax_regression import SoftmaxRegression
from keraunos.errors import JobError
from keraunos.launch.spark import worker_environment
from keraunos.session.registry import session_of
from keraunos.session.session import Session

# The folder of the files in the old library's document.
DATA_DIR = "/data"


def train(
    sc: Any = None,
    user: str | None = None,
    name: str = "spark_mnist",
    server_host: str = "localhost",
    server_port: int | None = 10080,
    sync_interval: int = 100,
    batch_size: int = 100,
    num_partition: int = 1,
    num_epoch: int = 1,
    server_reusable: bool = True,
) -> float:
    """Train on the idx files in `spark.hdfs.dir`; prints and returns the accuracy on the test images.

    Args:
        sc: the SparkContext; left out, the running one is used, or one that ends with the training.
        user: who runs it, for Spark's description of the job.
        name: what it is called there.
        server_host: the address of this machine that executors reach the parameters at.
        server_port: the port that they are served on; `None` for any free one.
        sync_interval: after how many batches a worker exchanges parameters.
        batch_size: rows that a worker takes in a step.
        num_partition: how many workers there are.
        num_epoch: how often each image is seen; images go to other workers each time.
        server_reusable: let the epochs' exchanges count as those of one server.
    """
    for argument, value in {"num_partition": num_partition, "num_epoch": num_epoch}.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise JobError(f"`{argument}` must be a whole number of at least 1. Received: {value!r}.")
    context, is_ours = _context(sc)
    try:
        spark = session_of(_spark(context))
        folder = spark.setting(HDFS_DIR)
        files = idx_files.IdxFolder(DATA_DIR if folder is None else folder, spark)
        pair = files.pair("train")
        images, labels = files.arrays("t10k")
        model = SoftmaxRegression()
        session = sps.SparkSession(
            context,
            model.session,
            user=user,
            name=name,
            server_host=server_host,
            server_port=server_port,
            sync_interval=sync_interval,
            batch_size=batch_size,
        )
        with session:
            # In the workers' environment, so that what reads the files runs in the Python that trains.
            with worker_environment(spark, "tensorflow"):
                blocks = idx_files.blocks(spark, pair, num_partition).cache()
            for epoch in range(num_epoch):
                session.run(
                    model.train_step,
                    feed_rdd=_rows(spark, blocks, num_partition, epoch),
                    feed_name_list=[model.x.name, model.y_.name],
                    param_list=[model.W, model.b],
                    shuffle_within_partition=True,
                    server_reusable=server_reusable,
                )
            blocks.unpersist()
            accuracy = model.accuracy(idx_files.pixels(images), idx_files.one_hot(labels))
        print(f"test accuracy {accuracy:.4f}")
        return accuracy
    finally:
        if is_ours:
            context.stop()


def _rows(spark: Session, blocks: Any, partitions: int, epoch: int) -> Any:
    """Returns the rows of an epoch; after the first, each block of them is with a worker at random."""
    with worker_environment(spark, "tensorflow"):
        spread = blocks.partitionBy(partitions, RandomPartitioner(partitions, epoch)) if epoch else blocks
        return spread.flatMap(idx_files.rows)


def _context(given: Any) -> tuple[Any, bool]:
    """Returns the context to run on, and whether it is to end with the training."""
    from pyspark import SparkContext

    if given is not None:
        return given, False
    is_new = SparkContext._active_spark_context is None
    return SparkContext.getOrCreate(), is_new


def _spark(context: Any) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession(context)
