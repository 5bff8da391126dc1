"""Every kind of message has one class, which reads back what it wrote and refuses everything else."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.batch import BatchSpec
from keraunos.exchange import messages
from keraunos.exchange.content import Content, Handlers
from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import KeptSlice, ShardFacts, SliceAddress, SlicePlace
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import Kind, Message, WireError, decode

SPEC = BatchSpec.from_json({"inputs": [[4], "float32"], "targets": None, "weighted": False})
SHARD = ShardFacts(rows=10, validation_rows=2, spec=SPEC, digest="d", parts=1)
ADDRESS = SliceAddress("tcp://127.0.0.1:5000", {"secret": "s"})
KEPT = Kept({0: 3}, {0: 30}, 3, [])
TALLY = Tally(round=3, rows=30, steps=3, timed=2, busy=2.5, waiting_for="GO")
ARRAYS = [["float32", [2]]]
PLACE = SlicePlace("tcp://127.0.0.1:5000", {"secret": "s"}, 0, 10, host_rank=1)
GO = messages.Go(lap=2, learning_rate=0.5, last=False)
SAID = (
    messages.Hello("here", "mark", b"\xff\0", {"keras": "3"}),
    messages.Fetch("job"),
    messages.Ready(SHARD, ADDRESS),
    messages.Report(rows=5, round=1, epoch=0, lap=0, shapes=[[2]], so_far=True, tally=TALLY),
    messages.Lap(
        rows=5, epoch=0, lap=0, step=3, ends_epoch=True, final=False, skipped=0, trained=True, shapes=[[2]], split=1,
        tally=TALLY,
    ),
    messages.Parameters(complete=True),
    messages.State(1, 8, ARRAYS, complete=True, save=True, slice=KEPT),
    messages.Norm(1.5),
    messages.Failed("KeyError", "a message", "a stack", ("a line",), "here"),
    messages.Done(),
    messages.Bye({1: 20}),
    messages.Ask(from_others=True),
    messages.Losses(),
    messages.Pulse(TALLY),
    messages.Stacks(TALLY, ("a", "b")),
    messages.Got(3, again=True),
    messages.Missed(),
    messages.Diverged(epoch=0, step=1, what="loss"),
    messages.Welcome({"job": 7}),
    messages.Blob(),
    messages.Start(
        rows={0: 10, 1: 12}, slices=(PLACE,), common={"pid": 1}, again=True, laps_done=2, decided=GO,
        kept=KeptSlice(8, ARRAYS, KEPT), learning_rate=0.5, traces_losses=True, saves={"every": 2, "rounds": []},
    ),
    GO,
    messages.Stop("enough"),
    messages.Alive(3, 4),
    messages.Upload(last=True),
    messages.Snapshot(1),
    messages.TotalNorm(2.5),
    messages.Release(),
    messages.HeldState(8, ARRAYS),
    messages.Probe(),
    messages.Remove(1, for_good=True),
    messages.Save(),
    messages.Recall(),
    messages.Join(1, "mark", wants_parameters=True, shared=True),
    messages.Push(4, (4.0, None), 2.0, shared=True),
    messages.Pass(shared=True),
    messages.Leave(),
    messages.Again(),
    messages.Joined(messages.Offers({"pid": 1}, {"pid": 2})),
    messages.RoundResult(first=True, empty=True, coded=True),
    messages.Refused("left out"),
    messages.Resend(),
)  # fmt: skip


def test_each_kind_is_said_by_one_class():
    assert [each.kind for each in SAID] == list(Kind)
    with pytest.raises(TypeError, match="SAVE is said by Save already"):

        class SaveToo(Content, kind=Kind.SAVE):
            pass


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.kind.name)
def test_what_is_written_is_read_back(said):
    sent = said.message(3, 1, 7)
    received = decode(sent.encode(b"k"), b"k")
    assert (received.kind, received.rank, received.incarnation, received.round) == (said.kind, 3, 1, 7)
    assert messages.content_of(received) == said


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.kind.name)
def test_a_field_of_another_type_is_refused(said):
    body = json.loads(json.dumps(said.body()))
    # What a tally has in words is only shown to people, whatever it is.
    for name in body.keys() - {"waiting_for", "sent", "received"}:
        for wrong in ({"x": object()}, [[[]]]):
            if type(wrong) is type(body[name]):
                continue
            with pytest.raises(WireError):
                messages.content_of(Message(said.kind, body={**body, name: wrong}))


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.kind.name)
def test_a_field_that_must_be_there_is_missed(said):
    body = said.body()
    for name in body:
        rest = {each: value for each, value in body.items() if each != name}
        try:
            found = messages.content_of(Message(said.kind, body=rest))
        except WireError:
            continue
        assert found != said


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_nothing_but_a_wire_error_comes_of_a_body_that_is_none(data):
    said = data.draw(st.sampled_from(SAID))
    body = said.body()
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(body) or ["x"]), values, max_size=3))
    try:
        found = messages.content_of(Message(said.kind, body={**body, **changed}))
    except WireError:
        return
    assert dataclasses.is_dataclass(found)
    json.dumps(found.body())


def test_a_second_handler_for_a_kind_is_an_error():
    handlers: Handlers[Message, str] = Handlers()
    handlers.on(messages.Save, lambda message, save: "first")
    with pytest.raises(ValueError, match="SAVE has a handler already"):
        handlers.on(messages.Save, lambda message, save: "second")
    assert handlers.of(Kind.SAVE)(Message(Kind.SAVE), messages.Save()) == "first"
    assert handlers.of(Kind.UPLOAD) is None
