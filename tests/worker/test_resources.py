"""A worker's cores, devices and memory."""

import os
import subprocess
import sys
import threading
import uuid
from contextlib import ExitStack

import pytest

from keraunos.worker import resources


@pytest.fixture
def available(monkeypatch):
    """The cores of this machine, none of which anybody has."""
    monkeypatch.setattr(resources, "CORE_NAME", f"keraunos-core-of-test-{uuid.uuid4()}")
    before = os.sched_getaffinity(0)
    yield tuple(sorted(before))
    os.sched_setaffinity(0, before)


def test_workers_of_one_host_get_cores_of_their_own_and_give_them_back(available):
    with ExitStack() as workers:
        got = [workers.enter_context(resources.cores(1)) for _ in available]
        assert sorted(got) == [(core,) for core in available]
        assert os.sched_getaffinity(0) == set(got[-1])
        with resources.cores(1) as too_late:
            assert too_late == available
    assert os.sched_getaffinity(0) == set(available)
    with resources.cores(1) as again:
        assert again == available[:1]


def test_a_worker_with_several_threads_gets_as_many_cores(available):
    with resources.cores(len(available)) as got:
        assert got == available
    with resources.cores(len(available) + 1) as got:
        assert got == available


def test_another_process_does_not_get_the_same_core(available):
    code = (
        f"from keraunos.worker import resources\nresources.CORE_NAME = {resources.CORE_NAME!r}\n"
        "with resources.cores(1) as got: print(got)"
    )
    with resources.cores(1) as ours:
        os.sched_setaffinity(0, available)
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = available[1:2] if len(available) > 1 else available
    assert ours == available[:1]
    assert told.stdout.strip() == str(expected)


def test_threads_of_an_earlier_job_move_along(available):
    stop, seen = threading.Event(), []

    def wait():
        stop.wait(timeout=10)
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=wait)
    thread.start()
    with resources.cores(1) as got:
        stop.set()
        thread.join()
    assert seen == [set(got)]


def test_devices_are_the_only_ones_seen(monkeypatch):
    for name in resources.DEVICE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    resources.show_devices(["2", "5"])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,5"
    for name in resources.DEVICE_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_memory_is_what_was_asked_for_or_a_share_of_what_there_is():
    assert resources.memory_budget(123, 4) == 123
    one, four = resources.memory_budget(None, 1), resources.memory_budget(None, 4)
    assert 64 << 20 <= four < one


def test_rows_spill_to_the_first_usable_directory_of_spark(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/missing,{tmp_path}")
    assert resources.spool_directory() == str(tmp_path)
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert resources.spool_directory() is None
