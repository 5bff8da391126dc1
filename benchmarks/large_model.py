"""A model of 100 million parameters trains with a driver heap of 1 GB; prints what memory each process took.

    spark-submit --master 'local[2]' --driver-memory 1G benchmarks/large_model.py --servers workers --exchange averaging

Parameters and model archives live in Python processes and in memory that they share; Spark's Java heap sees rows only.
"""

import argparse
import os
import resource
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

WIDTH = 10_000
_LEAST = 100 << 20


def main():
    options = _options()
    import keras
    import numpy as np
    from pyspark.sql import SparkSession

    from keraunos import KerasEstimator

    spark = SparkSession.builder.appName("large model").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    generator = np.random.default_rng(0)
    rows = [
        (generator.random(options.width, dtype=np.float32).tolist(), float(label % 2)) for label in range(options.rows)
    ]
    frame = spark.createDataFrame(rows, "features array<float>, label float").repartition(2)
    model = keras.Sequential(
        [keras.Input((options.width,)), keras.layers.Dense(options.width, use_bias=False), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(1e-6), "mse")
    print(
        f"{model.count_params():,} parameters, servers={options.servers!r}, exchange={options.exchange!r}", flush=True
    )
    watch = Watch()
    started = time.perf_counter()
    servers = int(options.servers) if options.servers.isdigit() else options.servers
    fitted = KerasEstimator(
        model=model, epochs=2, batchSize=8, numWorkers=2, exchange=options.exchange, servers=servers, verbose=0
    ).fit(frame)
    taken = time.perf_counter() - started
    watch.stop()
    losses = ", ".join(f"{loss:.4f}" for loss in fitted.history["loss"])
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    print(f"loss {losses}; fit {taken:.1f} s")
    print(
        f"Java heap: at most {heap.maxMemory() / 2**20:,.0f} MiB allowed, {heap.totalMemory() / 2**20:,.0f} MiB taken"
    )
    print(f"driver's Python: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:,.0f} MiB resident at most")
    for name, peak in sorted(watch.peaks.items()):
        print(f"{name}: {peak / 2**20:,.0f} MiB resident at most")
    spark.stop()


class Watch:
    """The highest resident memory of the processes below this one, by what they are."""

    def __init__(self):
        self.peaks = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._ended.set()
        self._thread.join()

    def _run(self):
        while not self._ended.wait(0.2):
            for name, resident in _processes():
                self.peaks[name] = max(self.peaks.get(name, 0), resident)


def _processes():
    """Java, which started this process, and the workers that it keeps below a daemon."""
    page = resource.getpagesize()
    java = os.getppid()
    yield "Java", int(Path(f"/proc/{java}/statm").read_text().split()[1]) * page
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = _parent(entry.name)
            resident = int((entry / "statm").read_text().split()[1]) * page
            if int(entry.name) != os.getpid() and parent != java and _parent(parent) == java and resident > _LEAST:
                yield f"worker process {entry.name}", resident
        except (OSError, IndexError):
            continue


def _parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default="driver")
    parser.add_argument("--exchange", default="allreduce")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--width", type=int, default=WIDTH, help="the parameters are about its square")
    return parser.parse_args()


if __name__ == "__main__":
    main()
