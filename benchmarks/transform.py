"""How fast `transform` serves, beside Spark's own `predict_batch_udf` and beside only reading the rows.

One run, one session, one model (an MLP 784-128-128-10 on JAX), one Parquet file; every contender writes to Spark's
`noop` sink. Prints rows/s (medians of alternating repeats) and the two ratios that matter, each the median of the
repeats' own ratios: what disturbs the machine for seconds disturbs the contenders of one repeat alike.

    transform / predict_batch_udf      goal: at least 1.5
    transform / read-only mapInArrow   goal: at least 0.7

    python benchmarks/transform.py --rows 120000 --repeats 11
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

FEATURES = 784
CLASSES = 10


def main() -> None:
    """Measure and print."""
    options = _options()
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(f"local[{options.cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")  # in less the collector takes part in the race
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        _write_rows(path, options.rows, options.cores)
        rates = measure(spark, path, options)
    spark.stop()
    _show(rates, options)


def measure(spark: Any, path: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """Rows a second of each contender, in alternating repeats after some that warm Spark's compiler up."""
    contenders = _contenders(spark, path, options.batch)
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(-options.warm_up, options.repeats):
        for name, make in contenders.items():
            frame = make()
            start = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            if repeat >= 0:
                rates[name].append(options.rows / (time.perf_counter() - start))
    return rates


def _contenders(spark: Any, path: str, batch: int) -> dict[str, Callable[[], Any]]:
    model = _model()
    fitted = _fitted(model, batch, spark.read.parquet(path).schema)
    predict = _batch_udf(model, batch)
    return {
        "transform": lambda: fitted.transform(spark.read.parquet(path)),
        "predict_batch_udf": lambda: spark.read.parquet(path).withColumn("scores", predict("features")),
        "read only (mapInArrow)": lambda: spark.read.parquet(path).mapInArrow(_only_read, "rows long"),
    }


def _model() -> Any:
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(128, activation="relu"),
            layers.Dense(128, activation="relu"),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def _fitted(model: Any, batch: int, schema: Any) -> Any:
    """The fitted model that a training would give, without the training."""
    from keraunos.ml.classifier import KerasClassifier
    from keraunos.ml.model import Trained
    from keraunos.ml.preparation import prepare
    from keraunos.telemetry.history import History

    classifier = KerasClassifier(model=model, inferenceBatchSize=batch)
    prepared = prepare(classifier, schema, workers=1, first_row=lambda: None)
    source = prepared.job.model
    head = classifier._head(model, prepared.signature)
    trained = Trained(source.archive, History(), prepared.signature, source.backend, source.floatx, head)
    return classifier._copyValues(classifier._fitted(trained))


def _batch_udf(model: Any, batch: int) -> Any:
    """The same model as Spark's documentation shows it: loaded once in a worker, compiled, called with batches."""
    import numpy as np
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    from keraunos.learners.keras_archive import to_archive

    archive = to_archive(model)

    def make_predict() -> Callable[[np.ndarray], np.ndarray]:
        os.environ["KERAS_BACKEND"] = "jax"
        from keraunos.learners.keras_archive import from_archive

        loaded = from_archive(archive)
        return loaded.predict_on_batch

    return predict_batch_udf(
        make_predict, return_type=ArrayType(FloatType()), batch_size=batch, input_tensor_shapes=[[FEATURES]]
    )


def _only_read(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def _write_rows(path: str, rows: int, partitions: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    Path(path).mkdir()
    for part in range(partitions):
        count = rows // partitions + (part < rows % partitions)
        values = generator.random(count * FEATURES, dtype=np.float32)
        features = pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * FEATURES, pa.array(values))
        labels = pa.array(generator.integers(0, CLASSES, count))
        pq.write_table(pa.table({"features": features, "label": labels}), f"{path}/part-{part}.parquet")


def _show(rates: dict[str, list[float]], options: argparse.Namespace) -> None:
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(f"{options.rows} rows of {FEATURES} float32, batch {options.batch}, local[{options.cores}]")
    print(f"{'':26}{'rows/s':>10}   lowest   highest   (of {options.repeats} repeats)")
    for name, values in rates.items():
        print(f"{name:26}{medians[name]:>10,.0f}{min(values):>9,.0f} {max(values):>9,.0f}")
    for name, goal in (("predict_batch_udf", 1.5), ("read only (mapInArrow)", 0.7)):
        ratios = [ours / other for ours, other in zip(rates["transform"], rates[name], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"transform / {name:24}{statistics.median(ratios):.2f}   ({spread}; goal {goal})")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--repeats", type=int, default=11, help="counted repeats of each contender, at least 3")
    parser.add_argument("--warm-up", type=int, default=40, help="repeats before: Java's compiler settles late")
    parser.add_argument("--batch", type=int, default=1024, help="rows that the model gets at once")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    if options.repeats < 3:
        parser.error("--repeats must be at least 3: medians of fewer say little")
    return options


if __name__ == "__main__":
    main()
