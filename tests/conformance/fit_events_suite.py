"""What a listener may rely on, whatever starts the fit: order, one start and one end, and that it disturbs nothing.

A test class inherits `FitEventsSuite` and says with `fit` how a job is trained.
"""

import itertools
import signal
import threading
from dataclasses import replace

import keras
import numpy as np
import pytest

from keraunos import History, JsonlLog, Listener, read_log
from keraunos.errors import KeraunosError
from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.launch.hooks import Hooks
from keraunos.telemetry.events import event_from_json
from tests.conformance import engine
from tests.conformance import learner_models as models

EPOCHS = 3
SIZES = [50, 30]
WORKERS = len(SIZES)


class Recorder(Listener):
    """Keeps what it is told."""

    def __init__(self):
        self.events, self.threads, self.closed_after = [], set(), []

    def on_event(self, event):
        self.events.append(event)
        self.threads.add(threading.current_thread())

    def close(self):
        self.closed_after.append(len(self.events))

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]


class Raising(Recorder):
    """Raises whatever it is told, and in the end."""

    def on_event(self, event):
        super().on_event(event)
        raise ZeroDivisionError(event.kind)

    def close(self):
        raise SystemExit("closed")


class Blocked(Listener):
    """Hangs with its first event until it is let go."""

    def __init__(self):
        self.heard, self.free = 0, threading.Event()

    def on_event(self, event):
        self.heard += 1
        self.free.wait()


class AtTheEndOfAnEpoch(Hooks):
    """Does something when an epoch has ended."""

    def __init__(self, act, epoch=1):
        self._act, self._epoch = act, epoch

    def end_lap(self, lap):
        return bool(lap.ends_epoch and lap.epoch == self._epoch and self._act())


def rows():
    random = np.random.default_rng(0)
    x = random.normal(size=(sum(SIZES), models.FEATURES)).astype("float32")
    return engine.partitions(engine.table(x=x, y=(x[:, 0] > 0).astype("int64")), SIZES)


def job(**options):
    return engine.job_of(models.dense("adam"), WORKERS, batch_size=8, epochs=EPOCHS, seed=3, **options)


def bounds_of(recorder):
    """How the fit ended, where there is one start and one end, at their places."""
    assert [event.kind for event in recorder.events[:1]] == ["started"]
    assert len(recorder.of("started")) == len(recorder.of("ended")) == 1
    assert recorder.events[-1].kind == "ended"
    assert recorder.closed_after == [len(recorder.events)]
    return recorder.events[-1]


def act(what):
    def done():
        what()
        return False

    return done


class FitEventsSuite:
    def fit(self, job, parts, **options):
        """Train, show nothing, and give the result."""
        raise NotImplementedError

    def test_events_come_in_order_from_one_thread_of_their_own(self):
        heard = Recorder()
        result = self.fit(job(lap=2), rows(), listeners=[heard])
        assert bounds_of(heard).how == "trained"
        assert len(heard.threads) == 1
        assert threading.main_thread() not in heard.threads
        assert len({event.fit for event in heard.events}) == 1
        assert all(one.time <= other.time for one, other in itertools.pairwise(heard.events))
        places = {
            kind: [i for i, event in enumerate(heard.events) if event.kind == kind] for kind in heard_kinds(heard)
        }
        assert len(places["worker_joined"]) == len(places["worker_ready"]) == WORKERS
        assert max(places["worker_joined"]) < max(places["worker_ready"]) < min(places["expected"])
        assert min(places["expected"]) < min(places["lap_closed"])
        ready = {event.rank: event.rows for event in heard.of("worker_ready")}
        assert (sorted(ready), sum(ready.values())) == (list(range(WORKERS)), sum(SIZES))
        assert [event.epoch for event in heard.of("epoch_closed")] == list(range(EPOCHS))
        steps = [event.step for event in heard.of("lap_closed")]
        assert steps == sorted(set(steps))
        assert [event.last for event in heard.of("lap_closed")] == [False] * (len(steps) - 1) + [True]
        assert [event.metrics for event in heard.of("epoch_closed")] == [dict(each) for each in result.history.epochs]

    def test_the_start_says_what_is_trained(self):
        heard = Recorder()
        asked = job()
        result = self.fit(asked, rows(), listeners=[heard])
        started = heard.events[0]
        assert started.workers == WORKERS
        assert started.servers == "driver"
        assert started.plan == asked.exchange.to_json()
        assert started.job["schedule"]["epochs"] == EPOCHS
        assert started.parameters == result.parameters.size
        assert heard.of("expected")[-1].rows == EPOCHS * sum(SIZES)

    def test_every_event_is_the_same_after_json(self):
        heard = Recorder()
        self.fit(job(validation_split=0.2), rows(), listeners=[heard])
        assert [event_from_json(event.to_json()) for event in heard.events] == heard.events

    def test_a_log_gives_the_history_of_the_last_fit(self, tmp_path):
        log = JsonlLog(tmp_path / "new" / "fit.jsonl")
        results = [self.fit(job(**asked), rows(), listeners=[log]) for asked in ({}, {"validation_split": 0.2})]
        events = read_log(tmp_path / "new" / "fit.jsonl")
        assert sum(event.kind == "started" for event in events) == 2
        assert History.from_events(events) == results[1].history
        first = [event for event in events if event.fit == events[0].fit]
        assert History.from_events(first) == results[0].history

    def test_a_fit_that_a_hook_stops_says_so(self):
        heard = Recorder()
        result = self.fit(job(), rows(), listeners=[heard], hooks=[AtTheEndOfAnEpoch(lambda: True)])
        assert bounds_of(heard).how == "stopped"
        assert History.from_events(heard.events) == result.history
        assert len(result.history.epochs) == 2

    def test_a_fit_that_fails_while_it_trains_ends_once(self):
        def fail():
            raise ZeroDivisionError("a hook of the user's")

        heard = Recorder()
        with pytest.raises(ZeroDivisionError):
            self.fit(job(), rows(), listeners=[heard], hooks=[AtTheEndOfAnEpoch(fail)])
        ended = bounds_of(heard)
        assert (ended.how, ended.why) == ("failed", "ZeroDivisionError: a hook of the user's")
        assert [event.epoch for event in heard.of("epoch_closed")] == [0]

    def test_a_fit_that_fails_before_it_is_launched_ends_once(self):
        heard = Recorder()
        broken = job()
        broken = replace(broken, model=replace(broken.model, archive=b"no archive"))
        with pytest.raises(KeraunosError):
            self.fit(broken, rows(), listeners=[heard])
        assert bounds_of(heard).how == "failed"
        assert [event.kind for event in heard.events] == ["started", "ended"]
        assert heard.events[0].parameters is None

    def test_a_fit_that_ctrl_c_stops_ends_once(self):
        heard = Recorder()
        interrupt = act(lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            self.fit(job(), rows(), listeners=[heard], hooks=[AtTheEndOfAnEpoch(interrupt)])
        assert bounds_of(heard).how == "interrupted"

    def test_a_fit_that_diverges_ends_once_and_says_why(self):
        x = np.ones((60, models.FEATURES), np.float32)
        x[50] = 1e30
        model = keras.Sequential([keras.Input((models.FEATURES,)), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        table = engine.table(x=x, y=np.ones((60, 1), np.float32))
        heard = Recorder()
        asked = engine.job_of(model, 2, batch_size=10, epochs=EPOCHS)
        result = self.fit(asked, engine.partitions(table, [30, 30]), listeners=[heard])
        ended, (diverged,) = bounds_of(heard), heard.of("diverged")
        assert (ended.how, ended.why) == ("diverged", diverged.reason)
        assert History.from_events(heard.events).to_json() == result.history.to_json()
        assert result.history.ended == diverged.reason

    def test_checkpoints_are_told_and_a_fit_that_goes_on_has_its_whole_history(self, tmp_path):
        def fail():
            raise ZeroDivisionError

        first, second = Recorder(), Recorder()
        saved = {"checkpoints": Checkpoints(str(tmp_path), SaveEvery(1, "epochs"))}
        with pytest.raises(ZeroDivisionError):
            self.fit(job(), rows(), listeners=[first], hooks=[AtTheEndOfAnEpoch(fail)], **saved)
        written = [event.number for event in first.of("checkpoint_written")]
        assert written == [1]
        result = self.fit(job(), rows(), listeners=[second], hooks=[AtTheEndOfAnEpoch(lambda: False)], **saved)
        (resumed,) = second.of("resumed")
        assert resumed.checkpoint == written[-1]
        assert bounds_of(second).how == "trained"
        assert len(second.of("epoch_closed")) == EPOCHS - 1
        assert History.from_events(second.events) == result.history
        assert len(result.history.epochs) == EPOCHS

    def test_a_listener_that_raises_or_hangs_changes_nothing_that_is_trained(self, caplog):
        plain = self.fit(job(), rows())
        raising, blocked, heard = Raising(), Blocked(), Recorder()
        result = self.fit(job(), rows(), listeners=[raising, blocked, heard])
        blocked.free.set()
        np.testing.assert_array_equal(result.parameters, plain.parameters)
        assert result.history == plain.history
        assert blocked.heard == 1
        # The others hear everything, and so does one that has raised.
        assert bounds_of(heard).how == "trained"
        assert [event.kind for event in raising.events] == [event.kind for event in heard.events]
        told = [record.getMessage() for record in caplog.records if "listener" in record.getMessage()]
        assert len(told) == 2
        assert sum("Raising" in each and "ZeroDivisionError" in each for each in told) == 1
        assert sum("Blocked" in each and "does not wait longer" in each for each in told) == 1


def heard_kinds(recorder):
    return {event.kind for event in recorder.events}
