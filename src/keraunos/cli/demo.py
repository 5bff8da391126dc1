"""The demo: trains and serves a Keras classifier on a local Spark. Runs on the driver."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keraunos
from keraunos import scratch
from keraunos.cli.backends import choose_backend
from keraunos.cli.local_spark import local_spark
from keraunos.data.digits import load_digits
from keraunos.errors import JobError
from keraunos.launch.preflight import check_java

DEFAULT_EPOCHS = 12
GOOD_ACCURACY = 0.95

_SEED = 7


@dataclass(frozen=True)
class Demo:
    """The options of the command."""

    workers: int
    epochs: int
    batch_size: int
    backend: str | None
    exchange: str
    master: str
    save: str | None
    verbose: bool

    def run(self) -> int:
        """Train, score, save, load in a new process, compare. Returns 0 if all results are as expected."""
        began = time.monotonic()
        check_java()
        backend = choose_backend(self.backend)
        if self.save is not None and Path(self.save).exists():
            raise JobError(f"`--save` must name a path that does not exist yet. Received: {self.save!r}.")
        _choose_keras_backend(backend)
        print(f"Keraunos {keraunos.__version__}: a Keras classifier, trained and served on Apache Spark\n")
        with scratch.folder("demo") as name:
            folder = Path(name)
            saved = self.save or str(folder / "digits")
            with local_spark(self.master, folder, verbose=self.verbose) as spark:
                accuracy = self._train_and_save(spark, backend, folder / "expected", saved)
            same = _compare_in_new_process(saved, folder, self.master, verbose=self.verbose)
        print(f"\nDone in {time.monotonic() - began:.0f} s.")
        accurate = accuracy >= GOOD_ACCURACY or self.epochs < DEFAULT_EPOCHS
        if not accurate:
            print(f"The accuracy is below the {GOOD_ACCURACY} that this demo should reach.", file=sys.stderr)
        return 0 if same and accurate else 1

    def _train_and_save(self, spark: Any, backend: str, expected: Path, saved: str) -> float:
        import keras
        from pyspark.ml import Pipeline
        from pyspark.ml.evaluation import MulticlassClassificationEvaluator
        from pyspark.ml.feature import VectorAssembler

        from keraunos import KerasClassifier
        from keraunos.session.registry import session_of

        digits = _digits(spark)
        train, test = digits.randomSplit([0.8, 0.2], seed=_SEED)
        model = _model(keras)
        pixels = [column for column in digits.columns if column.startswith("pixel")]
        java = session_of(spark).java_version
        _say("Spark", f"{spark.version} on {self.master}, Java {java}")
        _say("Model", f"{model.count_params():,} parameters, Keras {keras.__version__} on {backend}")
        _say("Data", f"{train.count():,} digits to train with, {test.count():,} to test with")
        team, length = _count(self.workers, "worker"), _count(self.epochs, "epoch")
        _say("Training", f"{team}, {self.exchange}, {length}, batches of {self.batch_size}\n")

        classifier = KerasClassifier(
            model=model,
            featuresCol="features",
            labelCol="label",
            epochs=self.epochs,
            batchSize=self.batch_size,
            numWorkers=self.workers,
            exchange=self.exchange,
            backend=backend,
            seed=_SEED,
        )
        fitted = Pipeline(stages=[VectorAssembler(inputCols=pixels, outputCol="features"), classifier]).fit(train)

        predictions = fitted.transform(test).drop("features").cache()
        accuracy = float(MulticlassClassificationEvaluator(metricName="accuracy").evaluate(predictions))
        print()
        _say("Accuracy", f"{accuracy:.4f} on the test rows")
        fitted.write().save(saved)
        _say("Saved", saved if self.save else "the fitted pipeline, in a temporary folder")
        predictions.write.parquet(str(expected))
        return accuracy


def _choose_keras_backend(backend: str) -> None:
    os.environ["KERAS_BACKEND"] = backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # otherwise TensorFlow logs many lines at start


def _digits(spark: Any) -> Any:
    """Returns 1,797 digits of 8 by 8 pixels, one column per pixel."""
    frame = load_digits().frame.rename(columns={"target": "label"}).astype({"label": "int32"})
    frame.insert(0, "id", range(len(frame)))
    return spark.createDataFrame(frame).cache()


def _model(keras: Any) -> Any:
    random.seed(_SEED)  # seeds Keras's initial weights; Keras's own `set_random_seed` loads TensorFlow
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Rescaling(1 / 16),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def _compare_in_new_process(saved: str, folder: Path, master: str, *, verbose: bool) -> bool:
    command = [sys.executable, "-m", "keraunos.cli.demo_check", saved, str(folder), master]
    done = subprocess.run(
        [*command, *(["--verbose"] if verbose else [])], stdout=subprocess.PIPE, text=True, check=False
    )
    _say("New process", done.stdout.strip() or f"ended with exit code {done.returncode}")
    return done.returncode == 0


def _say(what: str, text: str) -> None:
    print(f"  {what:<12} {text}")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
