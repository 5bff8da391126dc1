"""Workers that fall silent: they are waited for, and come back; or the fit ends; or it goes on without them."""

import itertools
import logging
import os
import signal
from dataclasses import replace

import keras
import numpy as np
import pytest

from keraunos.errors import WorkerError
from keraunos.exchange.client import Client
from keraunos.exchange.server import Server
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.launch import attendance, local
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.roll_call import RollCall
from keraunos.learners.keras_archive import from_archive
from keraunos.learners.keras_variables import read_vector
from keraunos.parameters import Layout
from keraunos.worker.loop import versions
from tests.conformance import engine
from tests.conformance.forked_workers import PATIENCE
from tests.launch.test_return import at_second_lap_of

ROWS = 600
END_SECONDS = 60

pytestmark = pytest.mark.usefixtures("forked_workers")


def _job(exchange="allreduce", servers="driver", **schedule):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return engine.job_of(model, 2, exchange=exchange, servers=servers, batch_size=10, **{"epochs": 4, **schedule})


def _partitions(sizes=(ROWS // 2, ROWS // 2)):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 6)).astype(np.float32)
    y = (x @ generator.normal(size=6) + 1)[:, None].astype(np.float32)
    return engine.partitions(engine.table(x=x, y=y), list(sizes))


class SignalAtEpoch(keras.callbacks.Callback):
    """Sends one worker's process a signal when an epoch has ended."""

    def __init__(self, processes, victim, signal_=signal.SIGSTOP, epoch=1):
        super().__init__()
        self._processes, self._victim, self._signal, self._epoch = processes, victim, signal_, epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self._epoch:
            self._processes.signal(self._victim, self._signal)


class OnWords(logging.Handler):
    """Does something when the driver says certain words."""

    def __init__(self, words, action):
        super().__init__(logging.WARNING)
        self.words, self.action, self.heard = words, action, []

    def emit(self, record):
        self.heard.append(record.getMessage())
        if self.words in self.heard[-1]:
            self.action()

    def __enter__(self):
        logging.getLogger("keraunos").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("keraunos").removeHandler(self)


class Processes:
    """The processes of the fit that runs, to do something to."""

    def __init__(self):
        self.made = None

    def signal(self, member, number):
        os.kill(self.made._processes[member].pid, number)

    def end(self, member):
        """Wait until a process has ended; the code."""
        return self.made._processes[member].wait(timeout=END_SECONDS)


@pytest.fixture
def processes(monkeypatch):
    found = Processes()

    class Kept(local.WorkerProcesses):
        def __init__(self, *args):
            super().__init__(*args)
            found.made = self

    monkeypatch.setattr(local, "WorkerProcesses", Kept)
    return found


def _fit(job, processes, *, victim=1, max_failures=2, parts=None):
    callbacks = [] if victim is None else [SignalAtEpoch(processes, victim)]
    return local.fit(job, parts or _partitions(), callbacks=callbacks, verbose=0, max_failures=max_failures)


def _vector(result):
    return read_vector(from_archive(result.archive))


def test_a_worker_that_stands_still_for_a_while_is_waited_for(processes, monkeypatch):
    monkeypatch.setattr(attendance, "AWAY_SECONDS", PATIENCE)
    expected = engine.fitted(_job(), _partitions())
    with OnWords("no sign of life", lambda: processes.signal(1, signal.SIGCONT)) as log:
        result = _fit(_job(), processes)
    np.testing.assert_array_equal(_vector(result), expected.parameters)
    said = [each for each in log.heard if "Worker 1 on" in each]
    assert ["no sign of life" in said[0], "is back after" in said[1], len(said)] == [True, True, 2]
    assert result.lost_rows == ()
    assert [each.returns for each in result.ranks] == [0, 0]


def test_a_worker_that_ended_because_the_driver_was_silent_is_not_blamed():
    job = replace(_job(), worker_patience=PATIENCE, driver_patience=PATIENCE)
    seconds = itertools.count()
    layout = Layout(("w",), ((1,),), trainable=1)
    with FitEvents(job) as events, Server(job.exchange, 2, layout, np.zeros(1, np.float32)) as server:
        # As after SIGSTOP and SIGCONT, which a test cannot send to itself.
        server._coordinator.longest_silence = 8.0
        roll = RollCall(job, server, events, clock=lambda: float(next(seconds)))
        looks = (roll.look({0, 1}, lambda rank: True, lambda rank: None) for _ in range(20))
        with pytest.raises(WorkerError, match=r"Nothing was heard from the driver at \S+ for 8 s.*\(driverPatience\)"):
            list(looks)


def test_a_worker_whose_good_bye_still_lies_before_the_driver_is_not_lost():
    # Under plans without a meeting a worker may be through long before the driver has read what it said.
    job = replace(_job("downpour"), worker_patience=PATIENCE)
    seconds = itertools.count()
    layout = Layout(("w",), ((1,),), trainable=1)
    with FitEvents(job) as events, Server(job.exchange, 2, layout, np.zeros(1, np.float32)) as server:
        with Client(server.connection, 0, 0) as client:
            client.hello(versions())
            client.bye()
        roll = RollCall(job, server, events, clock=lambda: float(next(seconds)))
        for _ in range(20):
            roll.look({0}, lambda rank: False, lambda rank: None)
        assert roll.lost_rows == []


def test_a_worker_that_stays_away_ends_the_fit(processes):
    job = replace(_job(), worker_patience=PATIENCE)
    with pytest.raises(WorkerError, match=r"Worker 1 on .* nothing was heard from it for 3 s.*'continue'") as raised:
        _fit(job, processes)
    assert raised.value.rank == 1


def _without(processes, plan, victim, *, then, servers="driver", **schedule):
    """Go on without a worker, which is stopped after an epoch if it is named; `then` is called when it is left out."""
    job = replace(_job(plan, servers, **schedule), worker_patience=PATIENCE, on_worker_lost="continue")
    with OnWords("goes on without it", then) as log:
        result = _fit(job, processes, victim=victim)
    assert sum("goes on without it" in each for each in log.heard) == 1
    return result


@pytest.mark.parametrize("victim", [0, 1])
def test_a_synchronous_fit_goes_on_without_a_worker(processes, victim):
    ends = []

    def resume():
        processes.signal(victim, signal.SIGCONT)
        ends.append(processes.end(victim))

    resumed = _without(processes, "allreduce", victim, then=resume)
    (lost,) = resumed.lost_rows
    assert (lost.rank, lost.epoch, lost.rows_per_epoch) == (victim, 2, ROWS // 2)
    assert ends == [0], "one that comes to again ends quietly"
    assert len(resumed.history["loss"]) == 4
    gone = _without(processes, "allreduce", victim, then=lambda: None)
    np.testing.assert_array_equal(_vector(resumed), _vector(gone))


def test_a_new_incarnation_of_a_worker_that_was_left_out_ends_quietly(processes):
    result = _without(processes, "averaging", 1, then=lambda: processes.signal(1, signal.SIGKILL), epochs=40)
    assert processes.end(1) == 0
    assert processes.made._failures[1] == 1
    assert [each.rank for each in result.lost_rows] == [1]


@pytest.mark.parametrize(
    ("plan", "servers"),
    [("downpour", "driver"), ("bounded", "driver"), (ExchangePlan.named("averaging", every=5), 1)],
    ids=["downpour", "bounded", "averaging on a server"],
)
def test_other_plans_go_on_without_a_worker(processes, monkeypatch, plan, servers):
    # Of workers that wait for nobody, one may be through before another has ended an epoch; and the other has to train
    # for longer than the patience.
    epochs = 500 if plan == "downpour" else 6
    at_second_lap_of(monkeypatch, 1, lambda: processes.signal(1, signal.SIGSTOP))
    result = _without(processes, plan, None, then=lambda: None, servers=servers, epochs=epochs)
    assert [each.rank for each in result.lost_rows] == [1]
    assert len(result.history["loss"]) == epochs
    assert result.history["loss"][-1] < result.history["loss"][0]


def test_a_round_that_only_the_lost_worker_would_have_filled_moves_nothing(processes):
    # Worker 1 has all the batches but one of an epoch.
    parts = _partitions((10, ROWS - 10))
    job = replace(_job(epochs=3), worker_patience=PATIENCE, on_worker_lost="continue")
    result = _fit(job, processes, parts=parts)
    assert [each.rows_per_epoch for each in result.lost_rows] == [ROWS - 10]
    assert 0 < result.history.lost_rows == 3 * (ROWS - 10) - result.contributed[1]
    assert np.isfinite(_vector(result)).all()
