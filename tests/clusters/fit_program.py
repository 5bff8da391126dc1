"""A driver of its own: fits of a small classifier on a cluster, with a line of JSON on stdout for all that happens.

    python -m tests.clusters.fit_program '{"master": "spark://…", "host": "127.0.0.1", "save": "/tmp/trained"}'

It is told on stdin what to fit, a `FitSpec` a line, and ends with its stdin. Whoever started it learns from the lines
on stdout when workers are ready, how far each rank is, and how a fit ended; the trained parameters lie in a file that
the last line of a fit names. Lines are stamped with the machine's monotonic clock, which all of its processes share.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np
from pyspark.sql import SparkSession
from sklearn.datasets import load_digits

from keraunos import KerasClassifier, KeraunosError
from keraunos.exchange.wire import Kind
from keraunos.launch import follow
from keraunos.launch import spark as launch
from keraunos.launch.hooks import Hooks
from keraunos.learners.keras_archive import from_archive
from tests.clusters.fit_spec import FitSpec, ProgramSpec
from tests.clusters.processes import until
from tests.java import SHORT_LIVED

TEST_EVERY = 5
SLOTS_SECONDS = 60.0
SEED = 5


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scikit-learn's digits: features, labels, and which rows are kept for the test."""
    bunch = load_digits()
    features = (bunch.data / 16).astype(np.float32)
    return features, bunch.target.astype(np.int32), np.arange(len(features)) % TEST_EVERY == 0


def training_rows() -> int:
    """How many rows a fit of this program trains on in an epoch."""
    return int((~digits()[2]).sum())


def contributed(result: Any) -> dict[str, int] | None:
    """How many rows of each rank the servers have applied, where the engine counts them."""
    counted = getattr(result, "contributed", None)
    return None if not counted else {str(rank): int(rows) for rank, rows in counted.items()}


def keeps_checkpoints() -> bool:
    """Whether a fit can be continued by another driver."""
    return hasattr(KerasClassifier, "checkpointDir")


class Told(Hooks):
    """Tells what happens to a fit."""

    def __init__(self, spec: FitSpec, session: Any) -> None:
        self._spec = spec
        self._session = session

    def on_ready(self, rank: int, rows: int) -> None:
        tell("ready", fit=self._spec.name, rank=rank, rows=rows)

    def on_event(self, event: Any) -> None:
        kind = event.kind.name.lower()
        tell("heard", fit=self._spec.name, kind=kind, rank=event.rank, rows=event.body.get("rows"))

    def end_lap(self, lap: Any) -> bool:
        tell("lap", fit=self._spec.name, epoch=lap.epoch, step=lap.step, loss=lap.logs.get("loss"))
        if lap.epoch == self._spec.stop_at:
            threading.Thread(target=self._session.sparkContext.stop, daemon=True).start()
        if lap.epoch == self._spec.hold_at:
            sys.stdin.readline()
        return False


def tell(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, "at": time.monotonic(), **facts}), flush=True)


def run(spec: ProgramSpec) -> None:
    session = _session(spec)
    tell("session", application=session.sparkContext.applicationId)
    for line in iter(sys.stdin.readline, ""):
        _fit(session, FitSpec(**json.loads(line)), Path(spec.save))
    session.stop()
    tell("end")


def _session(spec: ProgramSpec) -> Any:
    settings = {
        "spark.default.parallelism": "2",
        "spark.driver.host": spec.host,
        "spark.driver.bindAddress": spec.host,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **spec.settings,
    }
    builder = SparkSession.builder.master(spec.master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(spec.settings.get("spark.log.level", "ERROR"))
    return session


def _fit(session: Any, spec: FitSpec, folder: Path) -> None:
    features, labels, for_test = digits()
    until(lambda: launch.total_slots(session) >= spec.slots, SLOTS_SECONDS, f"{spec.slots} slots")
    began = time.monotonic()
    kept: list[Any] = []
    with _seen(Told(spec, session), kept):
        try:
            _estimator(spec).fit(_rows(session, features[~for_test], labels[~for_test], shuffled=spec.shuffled))
        except KeraunosError as error:
            tell("refused", fit=spec.name, error=type(error).__name__, message=str(error))
            return
        except Exception as error:  # noqa: BLE001 - any other error than ours is what the reader wants to know of
            tell("failed", fit=spec.name, error=type(error).__name__, message=str(error)[:3000])
            return
    (result,) = kept
    path = folder / f"{spec.name}.npy"
    np.save(path, result.parameters)
    predicted = from_archive(result.archive).predict(features[for_test], verbose=0).argmax(axis=1)
    tell(
        "finished",
        fit=spec.name,
        seconds=time.monotonic() - began,
        accuracy=float((predicted == labels[for_test]).mean()),
        parameters=str(path),
        epochs=len(result.history["loss"]),
        contributed=contributed(result),
        lost=result.history.lost_rows,
    )


@contextmanager
def _seen(hooks: Told, kept: list[Any]) -> Iterator[None]:
    """Fits in here have these hooks, tell what workers report, and leave their results in `kept`.

    Estimators have no Param for hooks, and hooks do not see single reports; both are reached where they pass.
    """
    real, handle = launch.fit, follow.Follower._handle

    def fit(*args: Any, **options: Any) -> Any:
        kept.append(real(*args, **{**options, "hooks": [*options.get("hooks", ()), hooks]}))
        return kept[-1]

    def handle_and_tell(self: Any, event: Any) -> None:
        if event.kind in {Kind.HELLO, Kind.REPORT, Kind.LAP, Kind.DONE, Kind.BYE}:
            hooks.on_event(event)
        handle(self, event)

    launch.fit, follow.Follower._handle = fit, handle_and_tell  # type: ignore[method-assign]
    try:
        yield
    finally:
        launch.fit, follow.Follower._handle = real, handle  # type: ignore[method-assign]


def _rows(session: Any, features: np.ndarray, labels: np.ndarray, *, shuffled: bool) -> Any:
    """The rows, in partitions that depend on nothing but the rows."""
    rows = [(number, row.tolist(), int(label)) for number, (row, label) in enumerate(zip(features, labels))]
    frame = session.createDataFrame(rows, "id int, features array<float>, label int")
    return frame.repartition(2, "id") if shuffled else frame


def _estimator(spec: FitSpec) -> KerasClassifier:
    random.seed(SEED)  # where Keras takes its initial weights from; its own `set_random_seed` loads TensorFlow
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.002), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return KerasClassifier(model=model, **{"numWorkers": 2, "seed": SEED, "verbose": 0, **spec.params})


if __name__ == "__main__":
    run(ProgramSpec(**json.loads(sys.argv[1])))
