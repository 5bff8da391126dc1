"""Listeners of fits in threads, in processes and on Spark; and the log that is one."""

import errno
import os

import pytest

from keraunos import History, JsonlLog, Listener, read_log
from keraunos.checkpoints.folder import LocalFolder
from keraunos.checkpoints.store import CheckpointStore
from keraunos.errors import DataError, JobError
from keraunos.job.saving import SaveEvery
from keraunos.launch import local
from keraunos.launch import spark as launch
from keraunos.launch.fit import Saving
from keraunos.telemetry.events import KINDS, EpochClosed
from keraunos.testing.listener_suite import ListenerSuite, whole_fit
from tests.conformance import engine
from tests.conformance.fit_events_suite import FitEventsSuite, Recorder, bounds_of, job, rows


@pytest.mark.spark
@pytest.mark.slow
class TestOnSpark(FitEventsSuite):
    @pytest.fixture(autouse=True)
    def _session(self, spark):
        self._spark = spark

    def fit(self, job, parts, **options):
        frames = [self._spark.createDataFrame(part).coalesce(1) for part in parts]
        return launch.fit(job, frames[0].union(frames[1]), verbose=0, **options)


class TestInThreads(FitEventsSuite):
    def fit(self, job, parts, *, checkpoints=None, **options):
        if checkpoints is not None:
            store = CheckpointStore(LocalFolder(checkpoints.directory), checkpoints.keep)
            options["saving"] = Saving(store, checkpoints.every)
        return engine.fitted(job, parts, **options)

    def test_a_checkpoint_that_could_not_be_written_is_told(self, tmp_path, caplog):
        class Full(LocalFolder):
            def write(self, name, buffers):
                if name.endswith(".bin"):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
                super().write(name, buffers)

        heard = Recorder()
        saving = Saving(CheckpointStore(Full(tmp_path)), SaveEvery(1, "epochs"))
        engine.fitted(job(), rows(), saving=saving, listeners=[heard])
        told = [event.message for event in heard.of("warning")]
        assert "Free some space there" in told[0]
        assert "checkpoints could not be written into" in told[-1]
        assert bounds_of(heard).how == "trained"
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == told


@pytest.mark.slow
class TestInProcesses(FitEventsSuite):
    def fit(self, job, parts, **options):
        return local.fit(job, parts, verbose=0, **options)


class TestJsonlLog(ListenerSuite):
    @pytest.fixture
    def listener(self, tmp_path):
        return JsonlLog(tmp_path / "log.jsonl")


class TestHistory(ListenerSuite):
    """Every kind of event has an example in the suite."""

    @pytest.fixture
    def listener(self):
        return HistoryKeeper()

    def test_there_is_an_example_of_each_kind(self):
        assert {event.kind for event in whole_fit()} == set(KINDS)


class HistoryKeeper(Listener):
    """Makes the history of what it was told."""

    def __init__(self):
        self.events = []

    def on_event(self, event):
        self.events.append(event)
        History.from_events([each for each in self.events if each.fit == event.fit])


def closed(number):
    return EpochClosed(epoch=number, metrics={"loss": 1.0 / (number + 1)}, fit="f\u2028", time=1.5)


def test_a_line_is_there_as_soon_as_its_event_was_told(tmp_path):
    log = JsonlLog(tmp_path / "log.jsonl")
    for number in range(3):
        log.on_event(closed(number))
        assert read_log(tmp_path / "log.jsonl") == [closed(each) for each in range(number + 1)]
    log.close()
    assert len((tmp_path / "log.jsonl").read_text().split("\n")) == 4


def test_a_log_goes_on_behind_what_is_there_but_for_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "log.jsonl"
    for number in range(2):
        log = JsonlLog(path)
        log.on_event(closed(number))
        log.close()
        with path.open("a") as file:
            file.write('{"kind": "epo')
    assert read_log(path) == [closed(0), closed(1)]


def test_what_is_no_log_is_refused(tmp_path):
    (tmp_path / "log.jsonl").write_text("1\n")
    with pytest.raises(DataError, match=r"`path` must be a file that JsonlLog wrote.*whose line 1 is no event"):
        read_log(tmp_path / "log.jsonl")
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "nothing.jsonl")


def test_what_is_no_listener_is_refused():
    with pytest.raises(JobError, match=r"`listeners` must be objects with `on_event\(event\)`.*Received: 'log.jsonl'"):
        local.fit(job(), rows(), listeners=["log.jsonl"], verbose=0)


@pytest.mark.spark
def test_where_files_cannot_grow_all_of_it_is_there_in_the_end(spark, tmp_path):
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.log-{tmp_path.name}.link./data", tmp_path.as_uri())
    address, now = f"viewfs://log-{tmp_path.name}/data/log.jsonl", [0.0]
    log = JsonlLog(address, clock=lambda: now[0])
    log.on_event(closed(0))
    assert not (tmp_path / "log.jsonl").exists()
    now[0] = 60.0
    log.on_event(closed(1))
    assert read_log(tmp_path / "log.jsonl") == [closed(0), closed(1)]
    log.on_event(closed(2))
    log.close()
    again = JsonlLog(address)
    again.on_event(closed(3))
    again.close()
    assert read_log(address) == [closed(number) for number in range(4)]
