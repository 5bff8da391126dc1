"""A program for a cluster of several processes: the same fit twice, and a digest of the weights each time."""

import hashlib
import sys

from pyspark.sql import SparkSession

from keraunos.launch import spark as launch
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_variables import read_vector
from tests.launch.test_spark import job, rows


def main(master):
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    settings = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "3"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    table = rows(300)
    for _ in range(2):
        # Five partitions into two: a real shuffle between processes, which gives rows in any order.
        frame = spark.createDataFrame(table).repartition(5)
        result = launch.fit(job(epochs=3, seed=11), frame, verbose=0)
        print("digest", hashlib.sha256(read_vector(from_archive(result.archive)).tobytes()).hexdigest())
        print("hosts", spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
