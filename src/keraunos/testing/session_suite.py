"""Tests for a kind of session.

A test class inherits `SessionSuite` and defines the fixtures `session` and `again`, of a running application.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from keraunos.session.session import Session

VARIABLE = "KERAUNOS_SESSION_SUITE"


def in_worker(records: Iterable[Any]) -> Iterator[str]:
    """Yield the suite's environment variable as the task sees it."""
    yield os.environ.get(VARIABLE, "")


def doubled(records: Iterable[Any]) -> Iterator[Any]:
    """Returns each record, doubled."""
    return (2 * each for each in records)


class SessionSuite:
    """Inherit it and define the fixtures `session` and `again`."""

    @pytest.fixture
    def session(self) -> Session:
        """Returns a session of a running application."""
        raise NotImplementedError

    @pytest.fixture
    def again(self) -> Session:
        """Returns another session of the same application."""
        raise NotImplementedError

    def test_it_is_a_session_of_an_application_that_runs(self, session: Session, again: Session) -> None:
        assert isinstance(session, Session)
        assert session.application is again.application
        assert not session.is_stopped()
        assert session.slots() >= 1
        assert session.hosts() >= 1
        assert session.parallelism >= 1
        assert session.largest_closure() > 0
        assert session.master
        assert session.user
        assert session.java_version[0].isdigit()

    def test_a_setting_that_is_not_set_is_none(self, session: Session) -> None:
        assert session.setting("spark.app.name")
        assert session.setting("spark.keraunos.not.set") is None

    def test_python_workers_have_the_environment_that_was_asked_for(self, session: Session) -> None:
        numbers = session.parallelize([0], 1)
        with session.environment({VARIABLE: "inside"}):
            pinned = session.pinned(numbers.mapPartitions(in_worker))
        assert pinned.collect() == ["inside"]
        assert pinned.mapPartitions(lambda records: [(*records, os.environ.get(VARIABLE, ""))]).collect() == [
            ("inside", "")
        ]
        assert numbers.mapPartitions(in_worker).collect() == [""]

    def test_an_outer_environment_keeps_its_values(self, session: Session) -> None:
        with session.environment({VARIABLE: "outer"}), session.environment({VARIABLE: "inner"}):
            assert session.pinned(session.parallelize([0], 1).mapPartitions(in_worker)).collect() == ["outer"]

    def test_a_job_computes_all_partitions_when_it_is_called(self, session: Session) -> None:
        seen = session.accumulator(0, None)
        job = session.job(session.parallelize(range(4), 2).map(seen.add))
        assert seen.value == 0
        job()
        assert seen.value == 0 + 1 + 2 + 3

    def test_values_reach_tasks(self, session: Session) -> None:
        factor = session.broadcast(3)
        assert session.parallelize([1, 2], 2).map(lambda each: each * factor.value).collect() == [3, 6]
        factor.destroy()

    def test_one_partition_of_many(self, session: Session) -> None:
        numbers = session.parallelize(range(6), 3)
        assert session.partition(numbers, 1).collect() == [2, 3]
        assert session.union([session.partition(numbers, 2), session.partition(numbers, 0)]).collect() == [4, 5, 0, 1]

    def test_functions_in_python_come_apart_from_their_source(self, session: Session) -> None:
        numbers = session.parallelize([0, 1, 2, 3], 2)
        source, function = session.apart(numbers.mapPartitions(doubled))
        assert source.collect() == [0, 1, 2, 3]
        assert function is not None
        assert list(function(0, iter([5]))) == [10]
        assert session.apart(numbers) == (numbers, None)

    def test_a_thread_has_the_tags_and_properties_of_the_one_that_made_it(self, session: Session) -> None:
        found: list[tuple[set[str], str | None]] = []

        def look() -> None:
            found.append((session.tags(), session.local_property("keraunos.suite")))

        session.add_tag("suite")
        session.set_local_property("keraunos.suite", "told")
        try:
            thread = session.thread(look, "keraunos-suite")
            thread.start()
            thread.join()
            inherited = session.inherited(look)
        finally:
            session.remove_tag("suite")
            session.set_local_property("keraunos.suite", None)
        other = threading.Thread(target=inherited)
        other.start()
        other.join()
        assert found == [({"suite"}, "told")] * 2
        assert session.tags() == set()
        assert session.local_property("keraunos.suite") is None

    def test_jobs_are_cancelled_by_their_tag(self, session: Session, tmp_path: Path) -> None:
        begun = tmp_path / "begun"
        failed: list[str] = []

        def endless(records: Iterable[Any]) -> NoReturn:
            begun.touch()
            while True:
                threading.Event().wait(0.05)

        def run() -> None:
            session.add_tag("suite-endless")
            try:
                session.job(session.parallelize([0], 1).mapPartitions(endless))()
            except Exception as error:  # noqa: BLE001 - each kind of session raises its own
                failed.append(str(error))

        thread = session.thread(run, "keraunos-suite")
        thread.start()
        _until(lambda: begun.exists() and bool(session.tasks("suite-endless", 0.0).running))
        session.cancel("another")
        assert thread.is_alive()
        session.cancel("suite-endless")
        thread.join(60)
        assert len(failed) == 1
        assert "cancel" in failed[0]

    def test_files_and_folders(self, session: Session, tmp_path: Path) -> None:
        folder = session.folder(str(tmp_path / "a folder"))
        folder.make("one")
        folder.make("another")
        folder.write("one/file", b"content")
        folder.write("one/_hidden", b"")
        assert folder.folders() == ["another", "one"]
        assert folder.path == folder.local_path == str(tmp_path / "a folder")
        assert folder.child("one").names().count("file") == 1
        assert session.files_at(f"{tmp_path}/*/one") == [folder.child("one/file").uri]
        assert session.files_at(f"{tmp_path}/nothing*") == []
        ((_, content),) = session.binary_files(folder.child("one/file").uri).collect()
        assert content == b"content"
        assert session.text_file(folder.child("one/file").uri).collect() == ["content"]


def _until(holds: Callable[[], bool], patience: float = 60.0) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"The condition did not become true within {patience:.0f} s."
        threading.Event().wait(0.05)
