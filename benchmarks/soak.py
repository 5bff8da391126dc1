"""Fits and transforms in one Spark session for half an hour: does anything grow?

Each turn fits a small classifier under the next exchange plan and place of the parameters, with checkpoints, and then
transforms the rows. After each turn the resident memory, the threads and the descriptors of the driver's Python, of the
JVM and of the Python workers are read from the system.

Prints a line a minute, and at the end the slope of each over the second half, in MB an hour.

    python benchmarks/soak.py --minutes 30
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

CORES = 2
TURNS = (
    ("allreduce", "driver"),
    ("averaging", "workers"),
    ("downpour", "driver"),
    ("allreduce", "workers"),
    ("elastic", "driver"),
)


@dataclass(frozen=True)
class Reading:
    """What one kind of processes has at one moment."""

    processes: int
    megabytes: float
    threads: int
    descriptors: int

    def __str__(self) -> str:
        counts = f"{self.threads} threads, {self.descriptors} descriptors, {self.processes} processes"
        return f"{self.megabytes:,.0f} MB, {counts}"


def main() -> None:
    """Run and print."""
    options = _options()
    spark, frame = _session()
    readings: dict[str, list[tuple[float, Reading]]] = {}
    began = shown = time.monotonic()
    turns = 0
    with tempfile.TemporaryDirectory() as folder:
        for exchange, servers in itertools.cycle(TURNS):
            _turn(frame, exchange, servers, str(Path(folder) / str(turns)))
            turns += 1
            now = time.monotonic()
            for kind, reading in _look(spark).items():
                readings.setdefault(kind, []).append((now - began, reading))
            if now - shown >= 60:
                shown = now
                _show(turns, now - began, readings)
            if now - began >= options.minutes * 60:
                break
    _show(turns, time.monotonic() - began, readings)
    _show_slopes(readings)
    spark.stop()


def _turn(frame: Any, exchange: str, servers: str, folder: str) -> None:
    import keras

    from keraunos import KerasClassifier

    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    fitted = KerasClassifier(
        model=model, epochs=3, numWorkers=CORES, exchange=exchange, servers=servers, checkpointDir=folder, verbose=0
    ).fit(frame)
    fitted.transform(frame).write.format("noop").mode("overwrite").save()
    keras.backend.clear_session()


def _session() -> tuple[Any, Any]:
    from pyspark.sql import SparkSession

    from keraunos.data.digits import load_digits

    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    digits = load_digits()
    rows = [(row.tolist(), int(label)) for row, label in zip(digits.data / 16.0, digits.target, strict=True)]
    return spark, spark.createDataFrame(rows, "features array<double>, label int").repartition(CORES).cache()


def _look(spark: Any) -> dict[str, Reading]:
    """The driver's Python, the JVM, and every Python process below it."""
    java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    return {
        "driver": _reading([os.getpid()]),
        "JVM": _reading([java]),
        "workers": _reading(_below(java)),
    }


def _below(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it ended while it was looked at
        if parent == pid:
            child = int(path.parent.name)
            found += [child, *_below(child)]
    return found


def _reading(pids: list[int]) -> Reading:
    megabytes, threads, descriptors, processes = 0.0, 0, 0, 0
    for pid in pids:
        try:
            facts = dict(
                line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
            )
            descriptors += len(list(Path(f"/proc/{pid}/fd").iterdir()))
        except OSError:
            continue  # it ended while it was looked at
        processes += 1
        megabytes += int(facts.get("VmRSS", "0 kB").split()[0]) / 1024
        threads += int(facts["Threads"])
    return Reading(processes, megabytes, threads, descriptors)


def _show(turns: int, seconds: float, readings: dict[str, list[tuple[float, Reading]]]) -> None:
    parts = [f"{kind} {each[-1][1]}" for kind, each in readings.items()]
    print(f"{seconds / 60:5.1f} min, {turns} turns: " + "; ".join(parts), flush=True)


def _show_slopes(readings: dict[str, list[tuple[float, Reading]]]) -> None:
    import numpy as np

    print("over the second half:")
    for kind, each in readings.items():
        half = each[len(each) // 2 :]
        hours = np.array([seconds for seconds, _ in half]) / 3600
        for name in ("megabytes", "threads", "descriptors"):
            values = np.array([getattr(reading, name) for _, reading in half], dtype=float)
            slope = np.polyfit(hours, values, 1)[0]
            print(f"  {kind:8} {name:12} {values.min():8,.0f} to {values.max():8,.0f}, slope {slope:+,.1f} an hour")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
