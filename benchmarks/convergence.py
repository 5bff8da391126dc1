"""How well models train under each plan: final test accuracy beside single-process Keras.

    python benchmarks/convergence.py --data FOLDER --markdown

FOLDER (or the environment variable KERAUNOS_MNIST) holds the four files of MNIST, idx, gzipped or not. The MLP
784-128-128-10 (dropout 0.2) trains on all 60,000 rows, a CNN (8 filters of 5x5 in strides of 2, pooling, 16 of 3x3)
on the first 20,000; both are judged by the 10,000 test rows.
Batch 32 (a worker's, for ours), Adam, 20 epochs, no early stop; a seed sets the first weights, which rows a worker
has, and their order. Workers are plain processes with one thread each. Plans have their preset's scaling and the
round length that the table states.

A run of 20 epochs takes from half a minute to a few, and there are many: every finished one is appended to --results,
and the next call goes on from there. Options choose a part of the whole; the table shows what was chosen.
"""

import argparse
import gzip
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
import pyarrow as pa

from keraunos.errors import PlanError
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch import local
from keraunos.learners.keras_archive import from_archive, to_archive

# Plans, and the round length that is asked for; None is the preset's own.
PLANS = {"averaging": 50, "diloco": 100, "elastic": None, "downpour": None, "hogwild": None, "bounded": None}
ROWS = {"mlp": 60_000, "cnn": 20_000}
GOALS = {True: 0.3, False: 0.7}  # points behind Keras, for synchronous plans and for the others


def make_model(name):
    layers = {
        "mlp": [
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dropout(0.2),
        ],
        "cnn": [
            keras.layers.Reshape((28, 28, 1)),
            keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Flatten(),
        ],
    }
    model = keras.Sequential([keras.Input((784,)), *layers[name], keras.layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class Mnist:
    """The rows: features as 784 float32 from 0 to 1, labels as int64."""

    def __init__(self, folder):
        folder = Path(folder)
        self.x, self.y = self._pair(folder, "train")
        self.x_test, self.y_test = self._pair(folder, "t10k")

    @staticmethod
    def _pair(folder, part):
        images = read_idx(folder / f"{part}-images-idx3-ubyte")
        features = (images.reshape(len(images), -1) / np.float32(255)).astype("float32")
        return features, read_idx(folder / f"{part}-labels-idx1-ubyte").astype("int64")


def read_idx(path):
    """The array in an idx file of bytes, gzipped under the name with .gz or as it is."""
    packed = path.with_name(path.name + ".gz")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} must be an idx file of unsigned bytes. Received: a file that begins {content[:4]!r}.")
    shape = np.frombuffer(content, dtype=">i4", count=content[3], offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * content[3]).reshape(shape)


class Results:
    """Finished runs in a file, one JSON object a line: what was run, and what came of it."""

    def __init__(self, path):
        self._path = Path(path)
        self._runs = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a line that an interruption cut short: its run is done again
            self._runs[self._key(entry["run"])] = entry

    def get(self, run):
        return self._runs.get(self._key(run))

    def add(self, run, **outcome):
        entry = {"run": run, **outcome}
        before = self._path.read_text() if self._path.exists() else ""
        with self._path.open("a") as file:
            file.write(("\n" if before and not before.endswith("\n") else "") + json.dumps(entry) + "\n")
        self._runs[self._key(run)] = entry
        return entry

    @staticmethod
    def _key(run):
        return json.dumps(run, sort_keys=True)


def describe(options, model, seed, plan=None, workers=1):
    """What makes a run what it is: a finished one with the same description is not run again."""
    return {
        "plan": "keras" if plan is None else plan.to_json(),
        "workers": workers,
        "model": model,
        "rows": min(options.rows or ROWS[model], ROWS[model]),
        "epochs": options.epochs,
        "batch_size": options.batch_size,
        "seed": seed,
        "backend": keras.config.backend(),
    }


def train(run, data, plan=None):
    """Train as described; accuracy on the test rows, in per cent."""
    keras.utils.set_random_seed(run["seed"])
    model = make_model(run["model"])
    x, y = data.x[: run["rows"]], data.y[: run["rows"]]
    if plan is None:
        model.fit(x, y, batch_size=run["batch_size"], epochs=run["epochs"], verbose=0)
    else:
        model = train_distributed(model, run, x, y, plan)
    scores = model.evaluate(data.x_test, data.y_test, batch_size=1000, verbose=0, return_dict=True)
    return 100 * float(scores["accuracy"])


def train_distributed(model, run, x, y, plan):
    job = TrainingJob(
        model=ModelSource(to_archive(model), keras.config.backend()),
        columns=Columns((Slot(None, ("x",)),), (Slot(None, ("y",)),)),
        schedule=Schedule(epochs=run["epochs"], batch_size=run["batch_size"], seed=run["seed"]),
        exchange=plan,
        workers=run["workers"],
    )
    order = np.random.default_rng(run["seed"]).permutation(len(x))
    parts = []
    for rows in np.array_split(order, run["workers"]):
        features = pa.FixedSizeListArray.from_arrays(pa.array(x[rows].reshape(-1)), x.shape[1])
        parts.append(pa.table({"x": features, "y": y[rows]}))
    return from_archive(local.fit(job, parts, verbose=0).archive)


def finished(results, run, data, title, plan=None):
    """The run's outcome, from the file or from running it now."""
    entry = results.get(run)
    if entry is None:
        started = time.perf_counter()
        accuracy = train(run, data, plan)
        entry = results.add(run, accuracy=accuracy, seconds=round(time.perf_counter() - started, 1))
        print(f"{title:<44} {accuracy:.2f} % in {entry['seconds']:.0f} s", flush=True)
    return entry["accuracy"]


def measure(options, data, results):
    """The rows of the table: one for Keras and one for each plan, for every model and number of workers."""
    table = []
    for model in options.models:
        alone = [
            finished(results, describe(options, model, seed), data, f"{model}, Keras, seed {seed}")
            for seed in options.seeds
        ]
        table.append((model, "", "single-process Keras", "", *figures(alone), "", "", ""))
        for workers in options.workers:
            table.extend(compare(options, data, results, model, workers, name, alone) for name in options.plans)
    return table


def compare(options, data, results, model, workers, name, alone):
    try:
        plan = ExchangePlan.named(name, every=PLANS[name])
    except PlanError:
        return (model, workers, name, "", "-", "-", "-", "", "no such plan in this version")
    accuracies = [
        finished(
            results,
            describe(options, model, seed, plan, workers),
            data,
            f"{model}, {name}, {workers} workers, seed {seed}",
            plan,
        )
        for seed in options.seeds
    ]
    behind = statistics.mean(alone) - statistics.mean(accuracies)
    goal = GOALS[plan.synchronous]
    verdict = "met" if behind <= goal else "missed"
    return (model, workers, name, plan.every, *figures(accuracies), f"{-behind:+.2f}", f"-{goal}", verdict)


def figures(accuracies):
    return f"{statistics.mean(accuracies):.2f}", " ".join(f"{each:.2f}" for each in accuracies)


HEAD = ("model", "workers", "plan", "every", "accuracy %", "by seed", "points to Keras", "goal", "")


def print_table(table, *, markdown):
    rows = [HEAD, *([str(cell) for cell in row] for row in table)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    left, between, right = ("| ", " | ", " |") if markdown else ("", "  ", "")
    lines = [
        left + between.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + right for row in rows
    ]
    if markdown:
        lines.insert(1, "| " + " | ".join("-" * max(3, width) for width in widths) + " |")
    print("\n" + "\n".join(line.rstrip() for line in lines))


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("KERAUNOS_MNIST"), help="the folder with MNIST")
    parser.add_argument("--plans", nargs="+", choices=PLANS, default=list(PLANS))
    parser.add_argument("--models", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--workers", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rows", type=int, default=None, help="fewer rows than a model's own, for a quick look")
    parser.add_argument("--results", default="convergence.jsonl", help="finished runs are appended to it")
    parser.add_argument("--markdown", action="store_true", help="print the table as markdown")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("say where MNIST is: --data FOLDER, or the environment variable KERAUNOS_MNIST")
    return options


def main(arguments=None):
    options = parse(arguments)
    table = measure(options, Mnist(options.data), Results(options.results))
    print_table(table, markdown=options.markdown)
    print(f"\n{options.epochs} epochs, batch {options.batch_size}, Adam, seeds {options.seeds}")


if __name__ == "__main__":
    main()
