"""A pytest plugin that fails a test which leaves something behind.

Checked are threads that are not daemons, ZeroMQ sockets, child processes, listening ports and temporary files with
our prefix. It watches every test below `tests/exchange`, `tests/worker` and `tests/launch`, and any test marked
`leaks`. What a Spark session owns is left out: it is shared by many tests and ends with the last of them. The run has a
folder of its own for temporary files, so that it sees none of what else runs on the machine.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

WATCHED = ("tests/exchange", "tests/worker", "tests/launch")
PREFIX = "keraunos"
GRACE_S = 5.0

# Processes that outlive a test by design: Spark's, and Python's one tracker of shared memory per process.
SHARED_PROCESSES = ("java", "pyspark.daemon", "pyspark/daemon", "multiprocessing.resource_tracker", "forkserver")


@pytest.fixture(scope="session", autouse=True)
def _own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = str(tmp_path_factory.mktemp("temporary"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    if not _is_watched(request.node):
        yield
        return
    before, events = _everything(), _events()
    yield
    left = _left_since(before, events)
    if left:
        pytest.fail("the test left behind:\n  " + "\n  ".join(left), pytrace=False)


def _is_watched(item: pytest.Item) -> bool:
    root = item.config.rootpath
    watched = any(item.path.is_relative_to(root / folder) for folder in WATCHED)
    return watched or item.get_closest_marker("leaks") is not None


def _left_since(before: dict[str, str], events: int) -> list[str]:
    """What is new, after a moment of grace for what is just ending."""
    deadline = time.monotonic() + GRACE_S
    pause = threading.Event()
    while True:
        now = _everything()
        left = sorted(text for key, text in now.items() if key not in before)
        if not left and _events() > events:
            # Every ZeroMQ socket has an event of the system's. Looking for the sockets themselves takes a second.
            left = _sockets()
        if not left or time.monotonic() > deadline:
            return left
        pause.wait(0.05)


def _everything() -> dict[str, str]:
    """Each thing that could be left behind: a key that tells it from others, and how to name it in a message."""
    return {**_threads(), **_children(), **_ports(), **_files()}


def _events() -> int:
    """How many descriptors of this process are events."""
    found = 0
    for descriptor in Path("/proc/self/fd").glob("*"):
        try:
            found += str(descriptor.readlink()) == "anon_inode:[eventfd]"
        except OSError:
            continue  # the descriptor of this very listing
    return found


def _threads() -> dict[str, str]:
    return {f"thread {id(each)}": f"thread {each.name}" for each in threading.enumerate() if not each.daemon}


def _sockets() -> list[str]:
    zmq = sys.modules.get("zmq")
    if zmq is None:
        return []
    gc.collect()
    # pyzmq keeps two sockets of its own for the whole process once something was sent without a copy.
    of_pyzmq = sys.modules["zmq.utils.garbage"].gc._context if "zmq.utils.garbage" in sys.modules else None
    return [
        f"zmq socket {each!r}"
        for each in gc.get_objects()
        if isinstance(each, zmq.Socket) and not each.closed and (of_pyzmq is None or each.context is not of_pyzmq)
    ]


def _children() -> dict[str, str]:
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = (stat.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (OSError, ValueError, IndexError):
            continue  # it ended while it was looked at
        if parent == os.getpid() and not any(name in command for name in SHARED_PROCESSES):
            found[f"process {stat.parent.name}"] = f"process {stat.parent.name} {command or '(ended, not waited for)'}"
    return found


def _ports() -> dict[str, str]:
    listening = {}
    for table in (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == "0A":
                listening[f"socket:[{fields[9]}]"] = int(fields[1].rpartition(":")[2], 16)
    found = {}
    for descriptor in Path("/proc/self/fd").glob("*") if listening else ():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue  # the descriptor of this very listing
        if target in listening:
            found[f"port {target}"] = f"listening port {listening[target]}"
    return found


def _files() -> dict[str, str]:
    names = [path for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if "cache" not in path.name]
    return {f"file {path}": f"temporary file {path}" for path in names}
