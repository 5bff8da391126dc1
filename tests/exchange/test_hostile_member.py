"""What a member with the job's secrets may say over its own connection: it ends no server and takes no memory."""

import numpy as np
import pytest

from fuzz.endpoints import NotingEndpoint
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.sharding import Slice
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.wire import Kind, Message, WireError, unpack_arrays, unpack_typed
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import OnWorkers
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "s"), ((6,), (2,)), trainable=1)
SPEC = {"inputs": [[4], "float32"], "targets": None, "weighted": False}
PLACE = {"address": "tcp://127.0.0.1:5000", "credentials": {"secret": "s"}}
READY = {"rows": 10, "validation_rows": 0, "spec": SPEC, "digest": "d", "parts": 1, "slice": PLACE}


def coordinator():
    state = CoordinatorState(LAYOUT, 2, placement=OnWorkers())
    for rank in range(2):
        state.receive(Message(Kind.HELLO, rank, 1, body={"host": "here"}))
    return state


def dropped(state, *arguments, **named):
    before = state.dropped
    assert state.receive(Message(*arguments, **named)) == []
    return state.dropped == before + 1


@pytest.fixture
def server(request):
    plan = request.param
    endpoint = NotingEndpoint()
    made = SliceServer(
        plan, Slice(LAYOUT, 0, LAYOUT.size), 2, np.zeros(LAYOUT.size, np.float32), endpoint, ranks=range(2)
    )
    yield made
    made.close()


def joined(server, rank, parts=1):
    server._take(b"%d" % rank, Message(Kind.JOIN, rank, 1, body={"parts": parts, "mark": "elsewhere"}))
    return rank in server.state.members


def push(rank, rows=1, parts=1, payload=b"", offset=0, **more):
    body = {"rows": rows, "denominators": [1.0] * parts, **more}
    held = None if payload is None else memoryview(payload or bytes(4 * (6 * parts + 2)))
    return Message(Kind.PUSH, rank, 1, 0, offset, body, held)


ASYNCHRONOUS = ExchangePlan("updates", 1, "asynchronous", "add")
AVERAGING = ExchangePlan("updates", 1, "synchronous", "mean")
ALLREDUCE = ExchangePlan.named("allreduce")


@pytest.mark.parametrize("server", [ASYNCHRONOUS], indirect=True)
def test_one_that_claims_to_share_memory_is_answered_over_the_socket(server):
    assert joined(server, 0)
    server._take(b"0", push(0, shared=True))
    (*_, answer) = server._endpoint.taken(b"0")
    assert answer.kind is Kind.RESULT
    assert answer.payload is not None


@pytest.mark.parametrize("server", [ASYNCHRONOUS], indirect=True)
def test_nothing_is_contributed_from_memory_that_nobody_has_written(server):
    assert joined(server, 0)
    server._take(b"0", push(0, payload=None))
    assert (server.state.applied, server.dropped) == (0, 1)


@pytest.mark.parametrize("server", [AVERAGING, ALLREDUCE], indirect=True)
def test_a_contribution_of_other_parts_than_the_others_has_no_place(server):
    assert joined(server, 0)
    assert not joined(server, 1, parts=2)
    server._take(b"1", push(1, parts=2))
    assert joined(server, 1)
    server._take(b"0", push(0))
    server._take(b"1", push(1))
    assert server.state.applied == 2


@pytest.mark.parametrize("rows", [-1, 10**400, 1 << 63])
@pytest.mark.parametrize("server", [AVERAGING], indirect=True)
def test_a_number_of_rows_that_nobody_has_is_dropped(server, rows):
    for rank in range(2):
        assert joined(server, rank)
    server._take(b"0", push(0, rows=rows))
    assert server.dropped == 1
    server._take(b"0", push(0, rows=3))
    server._take(b"1", push(1, rows=0))
    assert server.state.contributed == {0: 3, 1: 0}


@pytest.mark.parametrize("server", [AVERAGING], indirect=True)
def test_chunks_at_any_place_are_not_remembered(server):
    assert joined(server, 0)
    for offset in range(1, 50):
        assert dropped(server.state, Kind.PUSH, 0, 1, 0, offset, {})
    assert len(server.state.members[0].received) == 0


def test_a_claimed_size_takes_no_memory():
    state = coordinator()
    body = {"for": 0, "size": 1 << 39, "arrays": []}
    assert state.receive(Message(Kind.STATE, 0, 1, body=body, payload=memoryview(b"abc"))) == []
    (arriving,) = state._states._arriving.values()
    assert arriving.taken == 3
    assert dropped(state, Kind.STATE, 0, 1, 0, 3, {**body, "complete": True}, memoryview(b"d"))
    assert not state._states._arriving


def test_a_state_that_nobody_could_read_is_not_held():
    state = coordinator()
    body = {"for": 0, "size": 3, "arrays": [["({", [3]]], "complete": True}
    assert dropped(state, Kind.STATE, 0, 1, body=body, payload=memoryview(b"abc"))
    assert state.held() == {}


def test_norms_of_rounds_that_never_close_are_forgotten():
    state = coordinator()
    for rank in range(2):
        state.receive(Message(Kind.READY, rank, 1, body=READY))
    state.start()
    for round_ in range(100):
        assert state.receive(Message(Kind.NORM, 0, 1, round_, body={"value": 1.0})) == []
    assert sum(map(len, state._norms._parts.values())) <= 4
    assert len(state.receive(Message(Kind.NORM, 1, 1, 99, body={"value": 1.0}))) == 2


@pytest.mark.parametrize(
    "lie",
    [
        {"slice": {**PLACE, "address": "x" * 10_000}},
        {"slice": {**PLACE, "credentials": {"secret": "x" * 10_000}}},
        {"slice": {**PLACE, "credentials": {str(each): "" for each in range(1000)}}},
        {"rows": 10**400},
        {"validation_rows": -1},
    ],
)
def test_what_everyone_would_be_told_is_bounded(lie):
    state = coordinator()
    assert dropped(state, Kind.READY, 0, 1, body={**READY, **lie})
    assert not state.members[0].ready


@pytest.mark.parametrize("dtype", ["({", "(2,2", "x", 3, ["f4"], {"a": "b"}])
def test_a_type_that_is_none_is_a_wire_error(dtype):
    with pytest.raises(WireError, match="arrays"):
        unpack_typed([[dtype, [2]]], bytes(8))


def test_a_shape_beyond_all_is_a_wire_error():
    for read, described in ((unpack_typed, [["float64", [10**30]]]), (unpack_arrays, [[10**30]])):
        with pytest.raises(WireError, match="arrays"):
            read(described, bytes(8))
