"""How fast a fit is, beside plain Keras in one process on the same machine, in the same run.

    python benchmarks/train.py

MNIST-shaped rows (784 float32, 10 classes) in Parquet, an MLP 784-128-128-10 with dropout 0.2 on JAX, Spark in
local[2] with two workers. Repeats alternate between the contestants; figures are medians.

- steady state: samples/s over whole epochs after the first, for `averaging` every 50 steps and for `allreduce`,
  each beside `keras.Model.fit` on both cores at the same batch size. A batch of ours is per worker.
- second fit: wall time of a second `fit` in a session beside that of the first, with nothing compiled before.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import keras
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from keraunos import KerasClassifier


class EpochEnds(keras.callbacks.Callback):
    """Notes when each epoch ended."""

    def __init__(self):
        super().__init__()
        self.times = []

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter())

    def rate(self, rows):
        """Samples per second over the epochs after the first."""
        return rows * (len(self.times) - 1) / (self.times[-1] - self.times[0])


def make_model():
    model = keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def make_rows(count):
    random = np.random.default_rng(0)
    labels = random.integers(0, 10, count)
    centres = random.normal(size=(10, 784)).astype("float32")
    features = (centres[labels] + random.normal(size=(count, 784))).astype("float32")
    return features, labels


def start_spark():
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "2g"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write_parquet(spark, folder, features, labels):
    flat = pa.array(features.reshape(-1))
    lists = pa.ListArray.from_arrays(np.arange(0, features.size + 1, 784, dtype="int32"), flat)
    table = pa.table({"features": lists, "label": labels})
    spark.createDataFrame(table).repartition(2).write.parquet(folder)
    return spark.read.parquet(folder)


def ours(dataframe, rows, epochs, **params):
    ends = EpochEnds()
    KerasClassifier(model=make_model(), epochs=epochs, numWorkers=2, verbose=0, callbacks=[ends], **params).fit(
        dataframe
    )
    return ends.rate(rows)


def plain(features, labels, epochs, batch_size):
    ends = EpochEnds()
    make_model().fit(features, labels, batch_size=batch_size, epochs=epochs, verbose=0, callbacks=[ends])
    return ends.rate(len(features))


def wall_times(dataframe, fits):
    times = []
    for _ in range(fits):
        started = time.perf_counter()
        KerasClassifier(model=make_model(), epochs=1, numWorkers=2, verbose=0).fit(dataframe)
        times.append(time.perf_counter() - started)
    return times


def report(title, figures, baseline, goal):
    ours_, theirs = statistics.median(figures), statistics.median(baseline)
    spread = ", ".join(f"{min(each) / 1e3:.0f}-{max(each) / 1e3:.0f}k" for each in (figures, baseline))
    print(f"{title:<34} {ours_:>9,.0f} {theirs:>9,.0f} samples/s   {ours_ / theirs:.2f}x (goal {goal}x)   [{spread}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=6, help="epochs of a repeat; the first is not counted")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # A compile cache of its own: the first fit must not find what an earlier run compiled.
        os.environ["XDG_CACHE_HOME"] = folder
        spark = start_spark()
        features, labels = make_rows(arguments.rows)
        dataframe = write_parquet(spark, str(Path(folder) / "rows"), features, labels)
        first, second, third = wall_times(dataframe, 3)
        measured = {"averaging": [], "plain 32": [], "allreduce": [], "plain 128": []}
        plain(features, labels, 2, 32)
        plain(features, labels, 2, 128)
        for _ in range(arguments.repeats):
            options = {"exchange": "averaging", "every": 50, "batchSize": 32}
            measured["averaging"].append(ours(dataframe, arguments.rows, arguments.epochs, **options))
            measured["plain 32"].append(plain(features, labels, arguments.epochs, 32))
            options = {"exchange": "allreduce", "batchSize": 128}
            measured["allreduce"].append(ours(dataframe, arguments.rows, arguments.epochs, **options))
            measured["plain 128"].append(plain(features, labels, arguments.epochs, 128))
        spark.stop()
    print(f"{'':<34} {'ours':>9} {'plain':>9}")
    report("averaging every 50, batch 32", measured["averaging"], measured["plain 32"], 1.5)
    report("allreduce, batch 128", measured["allreduce"], measured["plain 128"], 0.9)
    print(
        f"wall time of one-epoch fits in one session: {first:.1f} s, {second:.1f} s, {third:.1f} s; "
        f"second / first {second / first:.2f} (goal at most 0.4)"
    )


if __name__ == "__main__":
    main()
