"""What many small partitions cost, beside an identity over the same partitions and beside few large ones.

    python benchmarks/partitions.py --partitions 200 --repeats 5

One run, one session, `local[2]`.

- `transform` of a fitted Keras model on a DataFrame of many partitions, over an identity `mapInArrow` on the same
  DataFrame, in Python workers that have loaded no framework. Goal: at most 1.5.
- a fit of Analytics Zoo's `TFOptimizer` on an RDD of many partitions, over the same fit on two; beside it what
  Spark takes to run the program's functions over the many, and to count the records. Goal: at most 1.5.

Every contender writes to Spark's `noop` sink or trains; figures are medians of alternating repeats, after one of each
that starts processes and loads frameworks. `docs/benchmarks.md` has figures.

What was expected, written down when the first figures were known: with a framework loaded each task of `transform` pays
for a collection of 0.2 s of CPU, so that it takes some ten times as long as the identity, and with the framework frozen
at most 1.3 times. A fit reads each partition once: the 198 more that it begins cost what Spark itself takes for them.

What came: on a quiet machine that was 3.3 times the fit on two partitions, most of it 40 ms of waiting a partition
with idle cores. A task begins with several small pieces over TCP whose acknowledgements Linux delays; workers of ours
ask for immediate ones, the identity's do not.
"""

import argparse
import os
import statistics
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

FEATURES, CLASSES, CORES = 16, 4, 2


def identity(batches):
    yield from batches


def transform(session, arguments):
    """Contenders over a DataFrame of many partitions."""
    import keras

    from keraunos import KerasClassificationModel

    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(CLASSES, activation="softmax")])
    served = KerasClassificationModel.of(model, featuresCol="features")
    frame = (
        session.range(arguments.rows)
        .selectExpr(f"transform(sequence(1, {FEATURES}), x -> float((id * x) % 7)) AS features")
        .repartition(arguments.partitions)
        .cache()
    )
    frame.count()
    # Workers that have loaded a framework are used again for whatever comes: the identity gets some of its own.
    environment = session.sparkContext.environment
    environment["PARTITIONS_BENCHMARK"] = "identity"
    alone = frame.mapInArrow(identity, frame.schema)
    alone._jdf.queryExecution().executedPlan()
    del environment["PARTITIONS_BENCHMARK"]
    return {"transform": lambda: write(served.transform(frame)), "identity": lambda: write(alone)}


def write(frame):
    frame.write.format("noop").mode("overwrite").save()


def fits(session, arguments):
    """The same fit on many partitions and on two; and what Spark takes to read the many, and does nothing with them."""
    context = session.sparkContext
    many = {
        f"fit, {count} partitions": (
            lambda count=count: fit(records(context, arguments.fit_rows, count), arguments.epochs)
        )
        for count in (arguments.partitions, CORES)
    }
    return many | {"reading alone": records(context, arguments.fit_rows, arguments.partitions).count}


def records(context, rows, partitions):
    import numpy as np

    def record(number):
        random = np.random.default_rng(number)
        label = number % CLASSES
        return [(random.normal(size=FEATURES) + label).astype("float32"), np.int32(label)]

    return context.parallelize(range(rows), partitions).map(record)


def fit(rdd, epochs):
    import tensorflow as tf

    from keraunos.compat.zoo.bigdl.optim.optimizer import Adam, MaxEpoch
    from keraunos.compat.zoo.pipeline.api.net import TFDataset, TFOptimizer

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        dataset = TFDataset.from_rdd(
            rdd, names=["x", "y"], shapes=[[FEATURES], []], types=[tf.float32, tf.int32], batch_size=64
        )
        x, y = dataset.tensors
        kernel = v1.get_variable("kernel", [FEATURES, CLASSES])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.matmul(x, kernel)))
        optimizer = TFOptimizer.from_loss(loss, Adam(1e-2))
        optimizer.optimize(end_trigger=MaxEpoch(epochs))


def compare(contenders, repeats, goal):
    taken = {name: [] for name in contenders}
    for repeat in range(-1, repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if repeat >= 0:
                taken[name].append(time.perf_counter() - start)
    ours, other = list(contenders)[:2]
    for name, seconds in taken.items():
        print(f"  {name:<18} {statistics.median(seconds):6.2f} s   ({min(seconds):.2f} to {max(seconds):.2f})")
    ratios = [one / another for one, another in zip(taken[ours], taken[other], strict=True)]
    print(f"  {ours} / {other}: {statistics.median(ratios):.2f} (goal at most {goal})\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--fit-rows", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    print(f"{arguments.partitions} partitions of {arguments.rows} rows")
    compare(transform(session, arguments), arguments.repeats, 1.5)
    print(f"{arguments.partitions} partitions of {arguments.fit_rows} rows, {arguments.epochs} epochs")
    compare(fits(session, arguments), arguments.repeats, 1.5)
    session.stop()


if __name__ == "__main__":
    main()
