import tempfile
import threading
from pathlib import Path

import pytest
import zmq

from tests import leaks

PROGRAM = """
import os, socket, subprocess, sys, tempfile, threading
import pytest, zmq

@pytest.mark.leaks
def test_it(keep):
    {body}
"""

BODIES = {
    "thread": "keep.append(threading.Thread(target=keep.release.wait)); keep[-1].start()",
    "zmq socket": "keep.append(zmq.Context()); keep.append(keep[0].socket(zmq.DEALER))",
    "process": "keep.append(subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE))",
    "listening port": "keep.append(socket.create_server(('127.0.0.1', 0)))",
    "temporary file": "keep.append(tempfile.NamedTemporaryFile(prefix='keraunos-'))",
}


class Kept(list):
    def __init__(self):
        super().__init__()
        self.release = threading.Event()

    def close(self):
        self.release.set()
        for each in reversed(self):
            if isinstance(each, zmq.Context):
                each.destroy(linger=0)
            elif isinstance(each, threading.Thread):
                each.join()
            elif hasattr(each, "communicate"):
                each.communicate(b"\n")
            else:
                each.close()


@pytest.fixture
def kept():
    kept = Kept()
    yield kept
    kept.close()


@pytest.fixture
def run(pytester, kept, monkeypatch):
    monkeypatch.setattr(leaks, "GRACE_S", 0.2)

    class GiveKept:
        @pytest.fixture
        def keep(self):
            return kept

    def run(body):
        pytester.makepyfile(PROGRAM.format(body=body))
        return pytester.inline_run("-p", "no:cacheprovider", plugins=[leaks, GiveKept()])

    return run


@pytest.mark.parametrize("what", BODIES)
def test_what_is_left_behind_fails_the_test(run, what):
    result = run(BODIES[what])
    passed, _, failed = result.listoutcomes()
    assert len(passed) == 1
    assert len(failed) == 1
    assert f"the test left behind:\n  {what}" in str(failed[0].longrepr)


def test_temporary_files_of_other_programs_are_not_blamed_on_a_test(run):
    with tempfile.NamedTemporaryFile(prefix="keraunos-") as elsewhere:
        name = elsewhere.name
    run(f"open({name!r}, 'w').close()").assertoutcome(passed=1)
    Path(name).unlink()


def test_a_tidy_test_passes(run):
    result = run("socket.create_server(('127.0.0.1', 0)).close(); subprocess.run([sys.executable, '-c', ''])")
    result.assertoutcome(passed=1)
