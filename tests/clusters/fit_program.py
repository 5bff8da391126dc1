"""A driver of its own: fits of a small classifier on a cluster, with a line of JSON on stdout for all that happens.

    python -m tests.clusters.fit_program '{"master": "spark://…", "host": "127.0.0.1", "save": "/tmp/trained"}'

It is told on stdin what to fit, a `FitSpec` a line, and ends with its stdin. Whoever started it learns from the lines
on stdout when workers are ready, how far each rank is, and how a fit ended; the trained parameters lie in a file that
the last line of a fit names. Lines are stamped with the machine's monotonic clock, which all of its processes share.
"""

from __future__ import annotations

import gc
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from pyspark.sql import SparkSession
from sklearn.datasets import load_digits

from keraunos import KerasClassifier, KeraunosError
from keraunos.exchange.wire import Kind
from keraunos.launch import follow, preflight
from keraunos.launch import spark as launch
from keraunos.launch.hooks import Hooks
from keraunos.learners.keras_archive import from_archive
from tests.clusters.fit_spec import FitSpec, ProgramSpec
from tests.clusters.processes import until
from tests.clusters.stages import at_stages
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
        tell("heard", fit=self._spec.name, kind=kind, rank=event.rank, rows=_rows_of(event.said))

    def end_lap(self, lap: Any) -> bool:
        tell("lap", fit=self._spec.name, epoch=lap.epoch, step=lap.step, loss=lap.logs.get("loss"))
        if lap.epoch == self._spec.stop_at:
            threading.Thread(target=self._session.sparkContext.stop, daemon=True).start()
        if lap.epoch == self._spec.hold_at:
            sys.stdin.readline()
        return False


def _rows_of(said: Any) -> int | None:
    """The rows that an event is about, as a member told them."""
    return getattr(getattr(said, "shard", None) or said, "rows", None)


def tell(event: str, **facts: Any) -> None:
    # One write a line: threads tell, too.
    sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **facts}) + "\n")
    sys.stdout.flush()


def run(spec: ProgramSpec) -> None:
    # Whoever is started in the background by a shell ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    session = _session(spec)
    tell("session", application=session.sparkContext.applicationId)
    settings: dict[str, str] = {}
    for line in iter(sys.stdin.readline, ""):
        fit = FitSpec(**json.loads(line))
        if fit.settings != settings:
            session.stop()
            settings = fit.settings
            session = _session(replace(spec, settings={**spec.settings, **settings}))
        _fit(session, fit, Path(spec.save))
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
    builder = SparkSession.builder.master(settings.pop("spark.master", spec.master))
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
    rows = _rows(session, features[~for_test], labels[~for_test], spec)
    with _seen(Told(spec, session), kept), at_stages(spec.holds, lambda stage: _reach(spec, stage)):
        failure = _failure_of(lambda: _estimator(spec).fit(rows))
    if failure is not None:
        event, error, message = failure
        tell(event, fit=spec.name, error=error, message=message, left=_left(session))
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
        left=_left(session),
    )


def _failure_of(fit: Callable[[], object]) -> tuple[str, str, str] | None:
    """How a fit failed: the event to tell, the error's name and its message. The error itself is not kept."""
    try:
        fit()
    except KeraunosError as error:
        return "refused", type(error).__name__, str(error)
    except KeyboardInterrupt as error:
        return "interrupted", type(error).__name__, str(error)
    except Exception as error:  # noqa: BLE001 - any other error than ours is what the reader wants to know of
        return "failed", type(error).__name__, str(error)[:3000]
    return None


def _reach(spec: FitSpec, stage: str) -> None:
    """Tell that a stage is reached, and wait to be let go on."""
    tell("stage", fit=spec.name, stage=stage)
    sys.stdin.readline()


def _left(session: Any) -> list[str]:
    """What a fit that is over has left in this process and its session: Spark jobs and threads."""
    # Memory that was shared stays mapped while an object that nobody can reach has a view of it.
    gc.collect()
    context = session.sparkContext
    if preflight.is_stopped(context):
        return []
    # Spark knows of the end of a job by an event, which is behind the end itself.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = [f"Spark job {each}" for each in context.statusTracker().getActiveJobsIds()]
    names = sorted(each.name for each in threading.enumerate())
    return jobs + [f"thread {name} of the driver" for name in names if name.startswith("keraunos")]


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


def _rows(session: Any, features: np.ndarray, labels: np.ndarray, spec: FitSpec) -> Any:
    """The rows, in partitions that depend on nothing but the rows."""
    rows = [(number, row.tolist(), int(label)) for number, (row, label) in enumerate(zip(features, labels))]
    frame = session.createDataFrame(rows, "id int, features array<float>, label int")
    frame = frame.repartition(2, "id") if spec.shuffled else frame
    if spec.slow_rows:
        sleeps = f"java_method('java.lang.Thread', 'sleep', cast({spec.slow_rows} as bigint))"
        return frame.selectExpr("id", f"if({sleeps} = 'null', features, null) as features", "label")
    return frame


def _estimator(spec: FitSpec) -> KerasClassifier:
    random.seed(SEED)  # where Keras takes its initial weights from; its own `set_random_seed` loads TensorFlow
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.002), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return KerasClassifier(model=model, **{"numWorkers": 2, "seed": SEED, "verbose": 0, **spec.params})


if __name__ == "__main__":
    run(ProgramSpec(**json.loads(sys.argv[1])))
