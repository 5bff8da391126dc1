"""A worker that is killed and started again: it continues in its round, and nothing is applied twice."""

import os
import signal

import keras
import numpy as np
import pytest

from keraunos.errors import WorkerError
from keraunos.exchange.wire import Kind
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.launch import local
from keraunos.launch.follow import Follower
from keraunos.launch.hooks import Hooks
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_variables import read_vector
from tests.conformance import engine

ROWS = 600

pytestmark = pytest.mark.usefixtures("forked_workers")


def _job(exchange, servers="driver", **schedule):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    job = engine.job_of(model, 2, exchange=exchange, servers=servers, batch_size=10, **schedule)
    return job, _partitions()


def _partitions():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 6)).astype(np.float32)
    y = (x @ generator.normal(size=6) + 1)[:, None].astype(np.float32)
    return engine.partitions(engine.table(x=x, y=y), [ROWS // 2, ROWS // 2])


class KillOnce(keras.callbacks.Callback):
    """Kills one worker's process when an epoch has ended; the others are then at work on the next one."""

    def __init__(self, workers, victim, epoch):
        super().__init__()
        self._workers, self._victim, self._epoch = workers, victim, epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self._epoch:
            self._workers.kill(self._victim)


def at_second_lap_of(monkeypatch, victim, action):
    """Call `action` when the driver hears that this worker has ended its second lap, wherever the others are."""
    handle, laps = Follower._handle, []

    def listening(follower, event):
        if event.kind is Kind.LAP and event.rank == victim:
            laps.append(event)
            if len(laps) == 2:
                action()
        handle(follower, event)

    monkeypatch.setattr(Follower, "_handle", listening)


class KillAtLap(Hooks):
    """Kills one worker's process at the end of a lap: before the parameters are asked for, or after."""

    def __init__(self, workers, victim, step, *, asks_after):
        self._workers, self._victim, self._step, self._asks_after = workers, victim, step, asks_after
        self.vectors = []

    def end_lap(self, lap):
        if lap.step == self._step:
            self._workers.kill(self._victim)
        if self._asks_after or lap.step != self._step:
            self.vectors.append(lap.parameters())
        return False


class Processes(local.WorkerProcesses):
    """The processes, and one more way to lose one."""

    def kill(self, member):
        os.kill(self._processes[member].pid, signal.SIGKILL)


@pytest.fixture
def processes(monkeypatch):
    made = []

    class Kept(Processes):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(local, "WorkerProcesses", Kept)
    return made


class _Lazy:
    def __init__(self, made):
        self._made = made

    def kill(self, member):
        self._made[-1].kill(member)


def _fit(job, parts, processes, *, victim=None, epoch=1, max_failures=2):
    callbacks = [] if victim is None else [KillOnce(_Lazy(processes), victim, epoch)]
    result = local.fit(job, parts, callbacks=callbacks, verbose=0, max_failures=max_failures)
    return read_vector(from_archive(result.archive)), result.history


@pytest.fixture(scope="module")
def undisturbed():
    job, parts = _job("allreduce", epochs=4)
    return engine.fitted(job, parts).parameters


@pytest.mark.parametrize("victim", [0, 1])
def test_a_synchronous_fit_gives_the_same_bits(processes, undisturbed, victim):
    job, parts = _job("allreduce", epochs=4)
    disturbed, history = _fit(job, parts, processes, victim=victim)
    assert len(history["loss"]) == 4
    np.testing.assert_array_equal(disturbed, undisturbed)
    assert processes[-1]._failures[victim] == 1


@pytest.mark.parametrize(("victim", "asks_after"), [(0, True), (1, False)])
def test_a_worker_lost_at_a_lap_finds_its_place(processes, undisturbed, victim, asks_after):
    # The lap ends within an epoch; the one who is asked for the parameters may be the one who is lost.
    job, parts = _job("allreduce", epochs=4, lap=7)
    hooks = KillAtLap(_Lazy(processes), victim, 35, asks_after=asks_after)
    result = local.fit(job, parts, hooks=[hooks], verbose=0, max_failures=2)
    np.testing.assert_array_equal(read_vector(from_archive(result.archive)), undisturbed)
    np.testing.assert_array_equal(hooks.vectors[-1], undisturbed)
    assert len({vector.tobytes() for vector in hooks.vectors}) == len(hooks.vectors) == 21 - (not asks_after)
    assert len(result.history["loss"]) == 4
    assert [each.steps for each in result.ranks] == [120, 120]
    assert processes[-1]._failures[victim] == 1


def test_a_training_that_is_to_stop_at_a_lap_stops_there_though_a_worker_is_lost(processes):
    class KillAndStop(KillAtLap):
        def end_lap(self, lap):
            super().end_lap(lap)
            return lap.step == self._step

    job, parts = _job("allreduce", epochs=4, lap=7)
    hooks = KillAndStop(_Lazy(processes), 1, 14, asks_after=True)
    result = local.fit(job, parts, hooks=[hooks], verbose=0, max_failures=2)
    counted, _ = _job("allreduce", steps=14)
    expected = engine.fitted(counted, parts).parameters
    np.testing.assert_array_equal(read_vector(from_archive(result.archive)), expected)
    np.testing.assert_array_equal(hooks.vectors[-1], expected)


@pytest.mark.parametrize(("exchange", "compression"), [("averaging", None), ("averaging", "int8"), ("diloco", None)])
def test_plans_with_long_rounds_give_the_same_bits(processes, exchange, compression):
    # Each worker has an optimizer of its own, whose state it leaves with every round.
    plan = ExchangePlan.named(exchange, every=10, compression=compression)
    expected = engine.fitted(*_job(plan, epochs=4)).parameters
    disturbed, _ = _fit(*_job(plan, epochs=4), processes, victim=1)
    np.testing.assert_array_equal(disturbed, expected)
    assert processes[-1]._failures[1] == 1


@pytest.mark.parametrize(
    "exchange",
    [
        ExchangePlan.named("averaging", every=5),
        ExchangePlan.named("downpour"),
        ExchangePlan.named("elastic"),
    ],
    ids=["averaging", "downpour", "elastic"],
)
def test_other_plans_train_to_the_end(processes, monkeypatch, exchange):
    # Of workers that wait for nobody, one may be through before another has ended an epoch.
    epochs = 6 if exchange.synchronous else 150
    job, parts = _job(exchange, epochs=epochs)
    at_second_lap_of(monkeypatch, 1, lambda: processes[-1].kill(1))
    _, history = _fit(job, parts, processes)
    assert len(history["loss"]) == epochs
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert processes[-1]._failures[1] == 1


def test_a_worker_that_is_lost_too_often_ends_the_fit(processes):
    job, parts = _job("allreduce", epochs=4)
    with pytest.raises(WorkerError, match="code -9"):
        _fit(job, parts, processes, victim=1, max_failures=1)
