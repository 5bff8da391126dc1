"""What strangers can take from a server that listens on a port before they have authenticated."""

import os
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from keraunos.exchange import doorman
from keraunos.exchange.client import Client
from keraunos.exchange.server import Server
from keraunos.exchange.wire import CHUNK_BYTES
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout
from tests.exchange.footprint import Footprint

LAYOUT = Layout(("w",), ((3,),), trainable=1)
STRANGERS = 2000
# The links of the workers themselves.
FEW = 16
# ZeroMQ's greeting, and the head of a frame that it makes room for.
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
FRAME = struct.pack("!BQ", 6, CHUNK_BYTES)


@contextmanager
def flood(port, says, padding):
    """A process of a stranger's with many connections, which it holds."""
    command = [sys.executable, "-m", "tests.exchange.flood", str(port), str(STRANGERS), says.hex(), str(padding)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


# A doorman dies, and strangers come until nobody hears of them; then the server closes. In a process of its own,
# because ZeroMQ stops the whole one when it cannot.
DIES = """
import socket, threading, zmq
from contextlib import suppress
from keraunos.exchange.doorman import Doorman

def dies(doorman):
    raise RuntimeError("injected")

Doorman._look = dies
threading.excepthook = lambda given: print(given.exc_value)
with zmq.Context() as context, context.socket(zmq.ROUTER) as router, Doorman(router):
    router.linger = 0
    port = router.bind_to_random_port("tcp://127.0.0.1")
    with suppress(TimeoutError):
        while True:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
print("closed")
"""


def test_a_server_closes_when_its_doorman_has_died_among_many_connections():
    done = subprocess.run([sys.executable, "-c", DIES], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["injected", "closed"]


@pytest.mark.parametrize(
    ("says", "padding"),
    [(b"", 0), (GREETING, 0), (GREETING + FRAME, CHUNK_BYTES - 1)],
    ids=["idle", "greeting", "unfinished frame"],
)
def test_strangers_are_bounded_in_number_and_memory_and_workers_come_in_beside_them(says, padding, capsys):
    with (
        Server(ExchangePlan.named("averaging"), 2, LAYOUT, np.zeros(3, np.float32), host="127.0.0.1") as server,
        Client(server.connection, 0, 1) as early,
    ):
        early.hello({})
        port = int(server.connection["address"].rpartition(":")[2])
        before = Footprint.of(os.getpid())
        with flood(port, says, padding) as process:
            descriptors, resident = map(int, process.stdout.readline().split())
            with Client(server.connection, 1, 1) as late:
                assert late.hello({})
            assert early.hello({})
            while Footprint.of(os.getpid()).descriptors - before.descriptors > doorman.MOST_PENDING + FEW:
                threading.Event().wait(0.05)
        most, taken = descriptors - before.descriptors, resident - before.resident
        with capsys.disabled():
            print(f"\n{STRANGERS:,} strangers: at most {most} more descriptors and {taken >> 20:+} MB here")
        # The bound holds soon, not at every moment: all of it happens while the machine does other things.
        assert most < STRANGERS // 2
        assert taken < 1 << 30
