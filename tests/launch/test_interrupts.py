"""Ctrl-C at every step of a fit on Spark ends in KeyboardInterrupt, leaves nothing behind, and the next fit works.

The signal is sent when a function of a named step is called or returns, so that it always comes at the same place.
What stays behind in threads, sockets, ports and files is looked for after each test in this folder.
"""

import contextlib
import signal
import sys
import threading

import pytest

from keraunos.job.saving import Checkpoints, SaveEvery
from keraunos.launch import interrupts, local
from keraunos.launch import spark as launch
from keraunos.launch.interrupts import INSISTS_SECONDS, Interrupts
from keraunos.session.registry import session_of
from tests.conformance import engine
from tests.launch.test_spark import Signals, frame, job, rows

# The function whose call or return is the step, and what it is called on in the job.
DRIVER = [
    ("FitEvents.__enter__", "return"),
    ("saved", "call"),
    ("remove_abandoned", "return"),
    ("Ledger.hold", "call"),
    ("load_home", "return"),
    ("CheckpointStore.claim", "return"),
    ("Server.__enter__", "call"),
    ("Server.__enter__", "return"),
    ("CheckpointWriter.__enter__", "return"),
    ("worker_environment", "call"),
    ("packed", "call"),
    ("_training", "return"),
    ("SparkJobs.run", "call"),
    ("InheritableThread.start", "return"),
    ("SparkJobs.run", "return"),
    ("Follower._gather", "call"),
    ("Follower._gather", "return"),
    ("Saves.begin", "return"),
    ("Server.start", "return"),
    ("Follower._on_lap", "call"),
    ("Laps._ask", "return"),
    ("CheckpointWriter.submit", "return"),
    ("LastGood.final", "call"),
    ("Follower._see_off", "call"),
    ("Follower.run", "return"),
    ("SparkJobs.__exit__", "call"),
    ("SparkJobs.__exit__", "return"),
    ("CheckpointWriter.__exit__", "call"),
    ("Server.__exit__", "call"),
    ("Server.__exit__", "return"),
    ("FitEvents.__exit__", "call"),
]
SERVER_TASKS = [
    ("Fit.await_servers", "call"),
    ("InheritableThread.start", "return"),
    ("TemporaryDirectory.cleanup", "call"),
]


@contextlib.contextmanager
def interrupted_at(function, event):
    """Send SIGINT to this process, once, when a function is called or returns in this thread; gives where it did."""
    sent = []

    def send():
        if not sent:
            sent.append((function, event))
            signal.raise_signal(signal.SIGINT)

    def on_call(frame, kind, argument):
        if frame.f_code.co_qualname != function or sent:
            return None
        if event == "call":
            send()
            return None
        return on_return

    def on_return(frame, kind, argument):
        if kind == "return":
            send()
        return on_return

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield sent
    finally:
        sys.settrace(before)


def fit_interrupted(spark, tmp_path, function, event, **asked):
    context, handler = spark.sparkContext, signal.getsignal(signal.SIGINT)
    environment = dict(context.environment)
    data = frame(spark, partitions=asked.get("workers", 2))
    saved = None if asked.get("servers") else Checkpoints(str(tmp_path), SaveEvery(1, "epochs"))
    asked_for = job(epochs=2, **asked)
    with pytest.raises(KeyboardInterrupt), interrupted_at(function, event) as sent:
        launch.fit(asked_for, data, verbose=0, checkpoints=saved)
    assert sent == [(function, event)]
    # Spark knows of the end of a job by an event, which is behind the end itself and before those of the next job.
    assert spark.range(1).count() == 1
    context._jsc.sc().listenerBus().waitUntilEmpty()
    assert context.statusTracker().getActiveJobsIds() == []
    assert [each.name for each in threading.enumerate() if each.name.startswith("keraunos")] == []
    assert signal.getsignal(signal.SIGINT) is handler
    assert context.environment == environment
    # With the same directory: it goes on, or says that all was done.
    assert len(launch.fit(asked_for, data, verbose=0, checkpoints=saved).history["loss"]) == 2


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("function", "event"), DRIVER)
def test_ctrl_c_at_any_step_leaves_a_clean_session(spark, tmp_path, function, event):
    fit_interrupted(spark, tmp_path, function, event)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("function", "event"), SERVER_TASKS)
def test_ctrl_c_at_any_step_of_servers_in_tasks(spark, tmp_path, function, event):
    fit_interrupted(spark, tmp_path, function, event, workers=1, servers=1)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "event"), [("Popen.__init__", "return"), ("WorkerProcesses.__exit__", "call")])
def test_ctrl_c_at_a_step_of_a_fit_in_processes(function, event):
    asked_for, parts = job(), engine.partitions(rows(), [100, 100])
    with pytest.raises(KeyboardInterrupt), interrupted_at(function, event) as sent:
        local.fit(asked_for, parts, verbose=0)
    assert sent == [(function, event)]


@pytest.mark.spark
def test_ctrl_c_while_other_fits_hold_the_slots(spark):
    ledger = launch.ledger_of(session_of(spark).application)
    with ledger.hold(2, 2), pytest.raises(KeyboardInterrupt), interrupted_at("Condition.wait_for", "call"):
        launch.fit(job(), frame(spark), verbose=0)
    assert launch.fit(job(), frame(spark), verbose=0).history["loss"]


@pytest.mark.spark
def test_ctrl_c_breaks_a_callback_at_once(spark):
    reached = []

    def callback():
        signal.raise_signal(signal.SIGINT)
        reached.append("behind it")

    with pytest.raises(KeyboardInterrupt):
        launch.fit(job(epochs=3), frame(spark), callbacks=[Signals(callback)], verbose=0)
    assert reached == []


@pytest.fixture
def handler():
    """A function that sets what SIGINT does; what it did before comes back in the end."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda each: signal.signal(signal.SIGINT, each)
    signal.signal(signal.SIGINT, before)


def test_a_signal_is_raised_where_it_is_asked_for():
    steps = []

    def run():
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("noted")
            interrupts.check()
            steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == ["noted"]


def test_a_signal_that_nobody_asked_for_is_raised_in_the_end():
    steps = []

    def run():
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("goes on")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == ["goes on"]


def test_the_clean_up_after_one_is_not_broken_by_the_next():
    steps = []

    def run():
        with Interrupts():
            try:
                signal.raise_signal(signal.SIGINT)
                interrupts.check()
            finally:
                signal.raise_signal(signal.SIGINT)
                interrupts.check()
                steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == ["cleaned up"]


def test_who_insists_is_obeyed_at_once():
    now, steps = [0.0], []

    def run():
        with Interrupts(clock=lambda: now[0]):
            signal.raise_signal(signal.SIGINT)
            now[0] = INSISTS_SECONDS
            signal.raise_signal(signal.SIGINT)
            steps.append("too early")
            now[0] = INSISTS_SECONDS + 1
            signal.raise_signal(signal.SIGINT)
            steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == ["too early"]


def test_a_handler_of_the_users_decides(handler):
    heard = []
    handler(lambda number, frame: heard.append(number))
    with Interrupts():
        signal.raise_signal(signal.SIGINT)
        assert heard == []
        interrupts.check()
        assert heard == [signal.SIGINT]
        signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT] * 2


def test_a_signal_that_is_ignored_stays_so(handler):
    handler(signal.SIG_IGN)
    with Interrupts():
        signal.raise_signal(signal.SIGINT)
        interrupts.check()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_have_no_signals():
    found = []

    def run():
        with Interrupts(), interrupts.allowed():
            interrupts.check()
            found.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before]
