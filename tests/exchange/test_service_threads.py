"""A thread that serves a job: no message ends it, and where something else does, the fit ends with the cause."""

import threading
from dataclasses import replace

import keras
import numpy as np
import pytest
import zmq

from keraunos.errors import KeraunosError
from keraunos.exchange.client import Client
from keraunos.exchange.coordination import Event
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.doorman import Doorman
from keraunos.exchange.key_check import KeyCheck
from keraunos.exchange.link import Link
from keraunos.exchange.message_parts import SlicePlace
from keraunos.exchange.messages import Missed
from keraunos.exchange.server import Server
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.wire import Kind
from keraunos.job import training_job
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import OnWorkers
from keraunos.launch.fit import Fit
from keraunos.parameters import Layout
from tests.conformance import engine
from tests.conformance import learner_models as models

LAYOUT = Layout(("w",), ((3,),), trainable=1)
ZEROS = np.zeros(3, np.float32)
PLAN = ExchangePlan.named("averaging")


def test_a_member_that_asks_for_a_slice_that_was_never_saved_is_dropped():
    with Server(PLAN, 1, LAYOUT, ZEROS, placement=OnWorkers()) as server, Client(server.connection, 0, 1) as client:
        client.hello({})
        client._link.send(Kind.FETCH, body={"name": "slice"})
        server.state.slices = [SlicePlace("", {}, 0, 3, host_rank=0)]
        client._link.send(Kind.FETCH, body={"name": "slice"})
        # Answered behind both.
        assert client.hello({})
        assert server.dropped == 2
        server.check()


def test_whatever_a_message_raises_the_others_are_answered(monkeypatch, caplog):
    def broken(state, message, fetch):
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(CoordinatorState, "_fetch", broken)
    with Server(PLAN, 1, LAYOUT, ZEROS) as server, Client(server.connection, 0, 1) as client:
        client.hello({})
        client._link.send(Kind.FETCH, body={"name": "job"})
        assert client.hello({})
        assert server.dropped == 1
        assert "A message FETCH of rank 0 could not be handled" in caplog.text
        assert "nobody thought of this" in caplog.text
        caplog.clear()


class Fails:
    """Does what a function does until `armed` is set, and then raises."""

    def __init__(self, function):
        self._function = function
        self.armed = threading.Event()

    @property
    def method(self):
        def called(owner, *given, **named):
            if self.armed.is_set():
                raise RuntimeError("injected")
            return self._function(owner, *given, **named)

        return called


class Injects(keras.callbacks.Callback):
    """Arms a failure when the first epoch is over, and knocks at the server, which some threads wait for."""

    def __init__(self, fails):
        super().__init__()
        self._fails = fails
        self.connection = None

    def on_epoch_end(self, epoch, logs=None):
        self._fails.armed.set()
        with zmq.Context() as context, Link(context, self.connection, 0, 1) as link:
            link.socket.linger = 0
            link.socket.poll(100)


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        (CoordinatorState, "alive", "injected"),
        (SliceServer, "_obey", "injected"),
        (Doorman, "_look", "The thread 'keraunos-doorman' of the driver has ended"),
        (KeyCheck, "_answer", "The thread 'keraunos-keys' of the driver has ended"),
    ],
    ids=["coordinator", "slice", "doorman", "keys"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # it is what the test does
def test_a_service_thread_that_dies_ends_the_fit_with_its_cause(owner, name, expected, monkeypatch, caplog):
    fails = Fails(getattr(owner, name))
    monkeypatch.setattr(owner, name, fails.method)
    injects = Injects(fails)
    make = Link.__init__

    def noting(link, context, connection, rank, incarnation):
        injects.connection = connection
        make(link, context, connection, rank, incarnation)

    monkeypatch.setattr(Link, "__init__", noting)
    x = np.random.default_rng(0).normal(size=(64, models.FEATURES)).astype("float32")
    table = engine.table(x=x, y=(x[:, 0] > 0).astype("int64"))
    # Nobody tells the worker's thread that the coordinator is dead.
    monkeypatch.setattr(training_job, "LEAST_PATIENCE", 1.0)
    job = replace(engine.job_of(models.dense("sgd"), 1, batch_size=16, epochs=100_000), driver_patience=1.0)
    with pytest.raises(KeraunosError, match=expected):
        engine.fitted(job, [table], callbacks=[injects], host="127.0.0.1")
    caplog.clear()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # it is what the test does
def test_a_service_thread_that_dies_is_found_however_many_events_come(monkeypatch):
    fails = Fails(KeyCheck._answer)
    monkeypatch.setattr(KeyCheck, "_answer", fails.method)
    injects, opened = Injects(fails), []
    opens = Fit.__init__

    def noting(fit, *given, **named):
        opens(fit, *given, **named)
        opened.append(fit)

    monkeypatch.setattr(Fit, "__init__", noting)

    class Busy(engine.Threads):
        def check(self):
            super().check()
            injects.connection = opened[0].connection
            # There is always one more when the follower looks.
            opened[0]._server.events.put(Event(Missed(), 0))

    monkeypatch.setattr(engine, "Threads", Busy)
    x = np.random.default_rng(0).normal(size=(64, models.FEATURES)).astype("float32")
    table = engine.table(x=x, y=(x[:, 0] > 0).astype("int64"))
    job = replace(engine.job_of(models.dense("sgd"), 1, batch_size=16, epochs=100), driver_patience=5.0)
    with pytest.raises(KeraunosError, match="The thread 'keraunos-keys' of the driver has ended"):
        engine.fitted(job, [table], callbacks=[injects], host="127.0.0.1")
