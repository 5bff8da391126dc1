"""How fast a TensorFlow graph trains, beside the same model through the Keras-TensorFlow learner, in the same run.

    python benchmarks/graph.py

The network of SparkFlow's document, 784-256-256-10 with Adam at 0.001, as a graph with placeholders and as a Keras
model; two local workers of one core each, the same rows, the same plan, the same batch size. Repeats alternate between
the two; figures are medians over whole epochs after the first.

- the same plan: samples/s of the graph over samples/s of the Keras model. Goal: at least 0.8.
- flat steps: 2,000 steps of the graph with Adam on the server; the time of the last 500 over that of the first 500,
  after 100 that warm it up. Goal: at most 1.1.
"""

import argparse
import os
import statistics
import time

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch import local
from keraunos.launch.hooks import Hooks
from keraunos.learners.graph_source import graph_source
from keraunos.learners.keras_archive import to_archive

v1 = tf.compat.v1

WORKERS = 2
ON_THE_SERVER = ExchangePlan("gradients", 1, "asynchronous", "adam(learning_rate=0.001)")
SYNCHRONOUS = ExchangePlan("gradients", 1, "synchronous", "adam(learning_rate=0.001)")
PLANS = {
    "allreduce": ExchangePlan.named("allreduce"),
    "averaging every 50": ExchangePlan.named("averaging", every=50),
    "Adam on the server": ON_THE_SERVER,
}


class Ends(Hooks):
    """Notes when each lap ended."""

    def __init__(self):
        self.times = []
        self.at_step = {}

    def end_lap(self, lap):
        self.times.append(time.perf_counter())
        self.at_step[lap.step] = self.times[-1]
        return False


def make_graph(plan):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 784], name="x")
        y = v1.placeholder(tf.float32, [None, 10], name="y")
        hidden = x
        for number, units in enumerate((256, 256, 10)):
            kernel = v1.get_variable(f"kernel_{number}", [hidden.shape[1], units])
            bias = v1.get_variable(f"bias_{number}", [units], initializer=v1.zeros_initializer())
            hidden = tf.matmul(hidden, kernel) + bias
            hidden = tf.nn.relu(hidden) if units > 10 else hidden
        loss = v1.losses.softmax_cross_entropy(y, hidden)
        parts = {"inputs": {"x": x}, "targets": {"y": y}, "loss": loss}
        if plan.send == "gradients" and not plan.applies_on_workers:
            return graph_source(graph, **parts)
        optimizer = v1.train.AdamOptimizer(0.001)
        pairs = optimizer.compute_gradients(loss)
        step = optimizer.apply_gradients(pairs)
        if plan.applies_on_workers:
            parts |= {"gradients": [each for each, _ in pairs], "variables": [each for _, each in pairs]}
        return graph_source(graph, train_op=step, **parts)


def make_keras(_):
    model = keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(keras.optimizers.Adam(0.001), keras.losses.CategoricalCrossentropy(from_logits=True))
    return ModelSource(to_archive(model), "tensorflow")


def make_rows(count):
    random = np.random.default_rng(0)
    labels = random.integers(0, 10, count)
    centres = random.normal(size=(10, 784)).astype("float32")
    features = (centres[labels] + random.normal(size=(count, 784))).astype("float32")
    columns = {"x": features, "y": np.eye(10, dtype="float32")[labels]}
    table = pa.table(
        {name: pa.FixedSizeListArray.from_arrays(each.reshape(-1), each.shape[1]) for name, each in columns.items()}
    )
    part = count // WORKERS
    return [table.slice(rank * part, part) for rank in range(WORKERS)]


def fit(source, plan, parts, **schedule):
    ends = Ends()
    columns = Columns((Slot(None, ("x",)),), (Slot(None, ("y",)),))
    job = TrainingJob(source, columns, Schedule(**schedule), plan, WORKERS)
    local.fit(job, parts, hooks=[ends], verbose=0)
    return ends


def rate(source, plan, parts, batch_size, epochs):
    """Samples per second over the epochs after the first."""
    times = fit(source, plan, parts, batch_size=batch_size, epochs=epochs).times
    rows = sum(part.num_rows for part in parts)
    return rows * (len(times) - 1) / (times[-1] - times[0])


def compare(parts, arguments):
    print(f"{'':<22} {'graph':>9} {'Keras':>9} samples/s at batch {arguments.batch_size}, {WORKERS} workers")
    for name, plan in PLANS.items():
        found = {make_graph: [], make_keras: []}
        for _ in range(arguments.repeats):
            for make, figures in found.items():
                figures.append(rate(make(plan), plan, parts, arguments.batch_size, arguments.epochs))
        graph, through_keras = (statistics.median(figures) for figures in found.values())
        spread = ", ".join(f"{min(each) / 1e3:.1f}-{max(each) / 1e3:.1f}k" for each in found.values())
        print(
            f"{name:<22} {graph:>9,.0f} {through_keras:>9,.0f}   {graph / through_keras:.2f}x (goal 0.8x)   [{spread}]"
        )


def flat(parts, arguments):
    """The time of a step in the last 500 of 2,000 over that in the first 500."""
    ratios = []
    for _ in range(arguments.repeats):
        source = make_graph(SYNCHRONOUS)
        schedule = {"batch_size": arguments.batch_size, "epochs": 1000, "steps": 2100, "lap": 50}
        at = fit(source, SYNCHRONOUS, parts, **schedule).at_step
        first, last = step_time(at, 100, 600), step_time(at, 1600, 2100)
        ratios.append(last / first)
        print(f"a step takes {first * 1e3:.2f} ms in the first 500 and {last * 1e3:.2f} ms in the last 500")
    print(f"last 500 of 2,000 steps over the first 500: {statistics.median(ratios):.2f} (goal at most 1.1)")


def step_time(at, start, stop):
    """Seconds a step between the laps' ends that are nearest to two steps."""
    first, last = (min(at, key=lambda step: abs(step - wanted)) for wanted in (start, stop))
    return (at[last] - at[first]) / (last - first)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=4, help="epochs of a repeat; the first is not counted")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    parts = make_rows(arguments.rows)
    compare(parts, arguments)
    flat(parts, arguments)


if __name__ == "__main__":
    main()
