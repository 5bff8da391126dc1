"""A worker's cores, devices and memory."""

import os
import threading

import pytest

from keraunos.worker import resources


@pytest.fixture
def cores():
    before = os.sched_getaffinity(0)
    yield tuple(sorted(before))
    os.sched_setaffinity(0, before)


def test_workers_of_one_host_get_cores_of_their_own_and_give_them_back(cores):
    got = [resources.pin(place, 1, len(cores)) for place in range(len(cores))]
    assert sorted(got) == [(core,) for core in cores]
    assert os.sched_getaffinity(0) == set(got[-1])
    resources.unpin()
    assert os.sched_getaffinity(0) == set(cores)


def test_threads_of_an_earlier_job_move_along(cores):
    stop, seen = threading.Event(), []

    def wait():
        stop.wait(timeout=10)
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=wait)
    thread.start()
    (core,) = resources.pin(0, 1, len(cores)) if len(cores) > 1 else (cores[0],)
    stop.set()
    thread.join()
    assert seen == [{core}]


def test_a_lone_worker_and_one_with_too_few_cores_keep_them_all(cores):
    assert resources.pin(0, 1, 1) == cores
    assert resources.pin(3, len(cores), 4) == cores


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
