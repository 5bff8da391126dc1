"""Programs that need a Spark of their own, which `test_local_cluster.py` runs one after the other in one process.

    python -m tests.launch.cluster_fit '[["same_bits"], ["devices", "/path/of/a/script"]]'

What a program prints stands below a line with its name. The settings of the first one reach the JVM when it starts,
so they must be those that all have.
"""

import contextlib
import hashlib
import json
import os
import sys
import traceback

import keras
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from keraunos.errors import KeraunosError
from keraunos.launch import follow
from keraunos.launch import spark as launch
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_variables import read_vector
from tests.conformance import engine
from tests.conformance import learner_models as models
from tests.launch.test_spark import frame, job, rows


def start(master, **settings):
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    common = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "3",
    }
    for name, value in (common | settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def same_bits():
    """The same fit twice, with a shuffle between processes before it."""
    spark = start("local-cluster[2,1,1024]")
    table = rows(300)
    for _ in range(2):
        # Five partitions into two: rows arrive in any order.
        shuffled = spark.createDataFrame(table).repartition(5)
        result = launch.fit(job(epochs=3, seed=11), shuffled, verbose=0)
        print("digest", hashlib.sha256(read_vector(from_archive(result.archive)).tobytes()).hexdigest())
    print("executors", spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1)
    spark.stop()


@keras.saving.register_keras_serializable("tests")
class TellsDevices(keras.layers.Layer):
    """Fails on a worker with what that worker sees."""

    def call(self, inputs, training=False):
        if training:
            raise RuntimeError(f"devices <{os.environ.get('CUDA_VISIBLE_DEVICES')}>")
        return inputs


def devices(script):
    """Workers see the devices that Spark gave to their task."""
    resource = {
        "spark.worker.resource.gpu.amount": "1",
        "spark.worker.resource.gpu.discoveryScript": script,
        "spark.executor.resource.gpu.amount": "1",
        "spark.task.resource.gpu.amount": "1",
    }
    spark = start("local-cluster[1,1,1024]", **resource)
    model = keras.Sequential([keras.Input((models.FEATURES,)), TellsDevices(), keras.layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    custom = {"TellsDevices": TellsDevices}
    _print_error(engine.job_of(model, 1, batch_size=16, custom=custom), frame(spark, partitions=1), custom)
    spark.stop()


def bare_python(python):
    """Executors whose Python has none of the packages."""
    os.environ["PYSPARK_PYTHON"] = python
    spark = start("local[1]")
    _print_error(job(workers=1), frame(spark, partitions=1))
    spark.stop()


def grows():
    """A synchronous fit on a cluster that has no executor before it, and asks for them when tasks wait."""
    dynamic = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.decommission.enabled": "true",
    }
    spark = start("local-cluster[2,1,1024]", **dynamic)
    print("epochs", len(launch.fit(job(epochs=2), frame(spark), verbose=0).history["loss"]))
    _print_error(job(workers=3), frame(spark, partitions=3))
    spark.stop()


def no_executors():
    """A cluster whose workers have fewer cores than an executor wants."""
    spark = start("local-cluster[1,1,1024]", **{"spark.executor.cores": "4"})
    _print_error(job(workers=1), frame(spark, partitions=1))
    spark.stop()


def no_worker_comes():
    """Executors whose Java runs out of memory, and others whose Python ends at once, a few times or again and again."""
    # Its own choice of Python is the driver's; this one is the program's.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = start("local-cluster[1,1,1024]", **{"spark.task.maxFailures": "1"})
    huge = spark.range(1).select(
        sf.expr("transform(sequence(0, int(id) + 100000000), each -> double(each))").alias("x"), sf.lit(0).alias("y")
    )
    _print_error(job(workers=1), huge)
    spark.sparkContext.pythonExec = "/bin/false"
    _print_error(job(workers=1), frame(spark, partitions=1))
    spark.stop()
    spark = start("local-cluster[1,1,1024]", **{"spark.task.maxFailures": "100000"})
    # Time for attempts to fail, and not for an executor to come.
    spark.range(1).count()
    follow.JOIN_SECONDS = 8.0
    spark.sparkContext.pythonExec = "/bin/false"
    _print_error(job(workers=1), frame(spark, partitions=1))
    spark.stop()


def _print_error(failing, dataframe, custom_objects=None):
    try:
        launch.fit(failing, dataframe, custom_objects=custom_objects, verbose=0)
    except KeraunosError as error:
        print(type(error).__name__, str(error).replace("\n", " "))


@contextlib.contextmanager
def as_found():
    """Leave the environment as it was, and no Spark."""
    environment = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        if (left := SparkSession.getActiveSession()) is not None:
            left.stop()


def main(programs):
    for name, *arguments in programs:
        print(f"== {name}", flush=True)
        with as_found():
            try:
                globals()[name](*arguments)
            except Exception:  # noqa: BLE001 - the test that reads this shows it
                traceback.print_exc(file=sys.stdout)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
