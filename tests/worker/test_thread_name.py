"""An operator finds a rank among many alike processes."""

import sys
import threading
from pathlib import Path

import pytest

from keraunos.worker.thread_name import server_name, thread_named, worker_name

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have such names on Linux")

OWN = Path("/proc/thread-self/comm")


def test_a_thread_has_its_name_inside_and_the_former_one_behind():
    before = OWN.read_text()
    with thread_named(worker_name(3)):
        assert OWN.read_text() == "keraunos-w3\n"
        with thread_named(server_name(0)):
            assert OWN.read_text() == "keraunos-s0\n"
        assert OWN.read_text() == "keraunos-w3\n"
    assert OWN.read_text() == before


def test_an_error_does_not_leave_the_name_behind():
    before = OWN.read_text()
    with pytest.raises(ValueError, match="inside"), thread_named(worker_name(1)):
        raise ValueError("inside")
    assert OWN.read_text() == before


def test_another_thread_names_only_itself():
    process = Path("/proc/self/comm").read_text()
    seen = []

    def work():
        with thread_named(worker_name(9999)):
            seen.extend([OWN.read_text(), Path("/proc/self/comm").read_text()])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["keraunos-w9999\n", process]
