"""A member says that it lives, whatever its training thread does; nobody else can say it for it."""

import json
import threading

import numpy as np
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange import pulse
from keraunos.exchange.client import Client
from keraunos.exchange.link import Link
from keraunos.exchange.messages import Stacks
from keraunos.exchange.server import Server
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import MAX_BODY_BYTES, Kind
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("w",), ((3,),), trainable=1)
WAIT_SECONDS = 30


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(pulse, "PULSE_SECONDS", 0.05)
    with Server(ExchangePlan.named("averaging"), 2, LAYOUT, np.zeros(3, np.float32)) as found:
        yield found


def until(condition):
    """Wait for something that another thread does."""
    pause = threading.Event()
    for _ in range(WAIT_SECONDS * 100):
        if condition():
            return True
        pause.wait(0.01)
    return False


def connection_of_the_pulse(client):
    """What the pulse speaks through, for this thread: a socket is for one thread at a time, so the pulse's own ends."""
    client._pulse._ringer.send(b"")
    client._pulse._thread.join(WAIT_SECONDS)
    return client._pulse._link


def test_the_pulse_beats_while_the_training_thread_does_something_else(server):
    with Client(server.connection, 0, 1) as client:
        client.hello({})
        # From here on this thread says nothing.
        client.tally.round, client.tally.rows = 7, 70
        before = server.signs[0]
        assert until(lambda: server.signs[0] > before + 3)
        assert until(lambda: server.tally(0) is not None and server.tally(0).round == 7)
        assert server.tally(0).rows == 70
        assert server.tally(0).received.startswith("WELCOME")
    silent = server.signs[0]
    assert not any(thread.name == "keraunos-pulse" for thread in threading.enumerate())
    assert server.signs[0] == silent
    assert server.dropped == 0


def test_a_pulse_is_heard_from_its_own_connection_only(server):
    with (
        Client(server.connection, 0, 1) as client,
        zmq.Context() as context,
        Link(context, server.connection, 0, 1) as thief,
    ):
        client.hello({})
        server.events.get(timeout=WAIT_SECONDS)
        assert until(lambda: server.tally(0) is not None)
        thief.send(Kind.PULSE, 9, body=Tally(round=9).to_json())
        thief.send(Kind.STACKS, 9, body=Tally(round=9).to_json() | {"stacks": ["x"]})
        assert until(lambda: server.dropped == 2)
        assert server.tally(0).round == 0
        # The pulse's own connection is no way to speak as the rank.
        connection_of_the_pulse(client).send(Kind.BYE)
        assert until(lambda: server.dropped == 3)
        assert not server.state.members[0].gone


def test_an_older_incarnations_pulse_is_told_so_and_ends(server):
    with Client(server.connection, 0, 1) as older:
        older.hello({})
        with Client(server.connection, 0, 2) as newer:
            newer.hello({})
            assert until(lambda: not older._pulse._thread.is_alive())
            assert newer._pulse._thread.is_alive()


def test_nothing_is_taken_from_who_was_left_out(server):
    with Client(server.connection, 0, 1) as client:
        client.hello({})
        server.leave_out(0)
        assert until(lambda: not client._pulse._thread.is_alive())


def test_a_member_says_where_its_threads_are(server):
    reached, leave = threading.Event(), threading.Event()

    def stuck_in_here():
        reached.set()
        leave.wait(WAIT_SECONDS)

    with Client(server.connection, 1, 1) as client:
        client.hello({})
        server.events.get(timeout=WAIT_SECONDS)
        thread = threading.Thread(target=stuck_in_here, name="the stuck one")
        thread.start()
        reached.wait(WAIT_SECONDS)
        try:
            server.probe()
            event = server.events.get(timeout=WAIT_SECONDS)
        finally:
            leave.set()
            thread.join()
    assert (event.kind, event.rank) == (Kind.STACKS, 1)
    (stuck,) = [each for each in event.said.stacks if "the stuck one" in each]
    assert "stuck_in_here" in stuck


def test_stacks_that_nobody_asked_for_are_dropped(server):
    with Client(server.connection, 0, 1) as client:
        client.hello({})
        connection_of_the_pulse(client).send(Kind.STACKS, body=Tally().to_json() | {"stacks": ["x"]})
        assert until(lambda: server.dropped == 1)


def test_the_stacks_of_many_threads_fit_into_a_message():
    leave = threading.Event()

    def deep(left):
        return deep(left - 1) if left else leave.wait(WAIT_SECONDS)

    threads = [threading.Thread(target=deep, args=(200,)) for _ in range(80)]
    for thread in threads:
        thread.start()
    try:
        told = pulse.stacks()
    finally:
        leave.set()
        for thread in threads:
            thread.join()
    assert len(json.dumps(told)) < MAX_BODY_BYTES
    said = Stacks(Tally(), told)
    assert Stacks.of(json.loads(json.dumps(said.body()))) == said


values = st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from(Tally.__slots__), values))
def test_what_is_no_tally_is_refused_as_such(data):
    try:
        tally = Tally.from_json({**Tally().to_json(), **data})
    except (TypeError, ValueError, OverflowError):
        return
    assert tally.round >= 0
    assert 0 <= tally.busy < float("inf")
    assert Tally.from_json(json.loads(json.dumps(tally.to_json()))) == tally
