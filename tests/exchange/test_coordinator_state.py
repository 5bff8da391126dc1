"""The coordinator's logic under any order of messages: the newest incarnation wins, training starts when it may.

The machine's members come, come back, get ready, report, fail and leave in any order, repeat themselves, speak as what
they were before, and talk nonsense; beside it runs a plain model.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from keraunos.exchange.coordination import Event, Send
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.message_parts import SlicePlace
from keraunos.exchange.messages import Lap
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import CHUNK_BYTES, LEFT_OUT, SUPERSEDED, Kind, Message
from keraunos.job.placement import FIRST_SERVER, ON_DRIVER, placement_of
from keraunos.parameters import Layout

LAYOUT = Layout(("w",), ((10,),), trainable=1)
SPEC = {"inputs": [[4], "float32"], "targets": None, "weighted": False}
FACTS = {"rows": 10, "validation_rows": 0, "spec": SPEC, "digest": "d", "parts": 1}
LAP = {
    "rows": 0, "epoch": 0, "lap": 0, "step": 1, "ends_epoch": False, "final": False, "skipped": 0, "trained": True,
    "shapes": [], "split": 0, "tally": Tally().to_json(),
}  # fmt: skip


def place(rank):
    return {"address": f"tcp://127.0.0.1:{5000 + rank % 1000}", "credentials": {"password": "p"}}


class Job(RuleBasedStateMachine):
    """Slices on the driver, and everyone starts at once; subclasses differ."""

    placement = ON_DRIVER
    needs_all = True

    @initialize(workers=st.integers(1, 3))
    def begin(self, workers):
        self.state = CoordinatorState(
            LAYOUT,
            workers,
            placement=self.placement,
            needs_all=self.needs_all,
            blobs={"job": lambda: memoryview(b"the job")},
        )
        if self.placement.on_driver:
            self.state.slices = [SlicePlace(**place(0), start=0, stop=10)]
        self.ranks = [*range(workers), *range(FIRST_SERVER, FIRST_SERVER + self.placement.server_tasks)]
        self.workers = workers
        self.incarnations = {}
        self.ready = set()
        self.started = set()
        self.gone = set()
        self.laps = {}
        self.traced = {}
        self.begun = False
        self.stopped = None

    def say(self, kind, rank, incarnation=None, *, round_=0, offset=0, payload=None, **body):
        number = self.incarnations.get(rank, 1) if incarnation is None else incarnation
        return self.state.receive(Message(kind, rank, number, round_, offset, body, payload))

    def unheard(self, *arguments, **named):
        dropped = self.state.dropped
        assert self.say(*arguments, **named) == []
        assert self.state.dropped == dropped + 1

    def starts(self, actions):
        """Who is told to start, checked against who may be."""
        told = [each for each in actions if isinstance(each, Send) and each.message.kind is Kind.START]
        for each in told:
            slices = each.message.body["slices"]
            assert slices, "nobody starts before all slices have a place"
            assert [slices[0]["start"], slices[-1]["stop"]] == [0, LAYOUT.size]
            assert all(before["stop"] == after["start"] for before, after in pairwise(slices))
        return {each.rank for each in told}

    @property
    def may_start(self):
        if self.placement.server_tasks and not {rank for rank in self.ranks if rank >= FIRST_SERVER} <= self.ever_ready:
            return False
        return self.begun or not self.needs_all

    @property
    def ever_ready(self):
        return {rank for rank in self.ranks if rank in self.state._hosts} if self.placement.server_tasks else set()

    def expect_starts(self, actions):
        told = self.starts(actions)
        expected = self.ready - self.started if self.may_start else set()
        assert told == expected
        self.started |= told

    def pick(self, data, condition):
        found = [rank for rank in self.ranks if condition(rank)]
        return data.draw(st.sampled_from(found)) if found else None

    @rule(data=st.data(), newer=st.integers(1, 3))
    def come(self, data, newer):
        rank = data.draw(st.sampled_from(self.ranks))
        again = rank in self.incarnations
        number = self.incarnations.get(rank, 0) + newer
        former = [self.incarnations[rank]] if again and rank not in self.gone else []
        actions = self.say(Kind.HELLO, rank, number, host="here", mark="m", versions={})
        self.incarnations[rank] = number
        self.ready.discard(rank)
        self.started.discard(rank)
        self.gone.discard(rank)
        if self.stopped is not None:
            (stop,) = actions
            assert (stop.message.kind, stop.message.body["reason"]) == (Kind.STOP, self.stopped)
            return
        event, welcome, *stops = actions
        assert [each.message.incarnation for each in stops if each.to_former] == former
        assert all(each.message.body["reason"] == SUPERSEDED for each in stops)
        assert (event.kind, event.rank, event.said.again) == (Kind.HELLO, rank, again)
        assert welcome.message.kind is Kind.WELCOME
        assert welcome.message.body["sizes"] == {"job": 7}

    @rule(data=st.data(), kind=st.sampled_from([Kind.HELLO, Kind.READY, Kind.LAP, Kind.BYE, Kind.FAILED]))
    def speak_as_an_older_incarnation(self, data, kind):
        rank = self.pick(data, lambda rank: self.incarnations.get(rank, 0) > 1)
        if rank is not None:
            older = data.draw(st.integers(0, self.incarnations[rank] - 1))
            (stop,) = self.say(kind, rank, older, host="there", **FACTS)
            assert stop.to_sender
            assert (stop.message.kind, stop.message.body["reason"]) == (Kind.STOP, SUPERSEDED)

    @rule(data=st.data())
    def get_ready(self, data):
        rank = self.pick(data, lambda rank: rank in self.incarnations and rank not in self.ready)
        if rank is None or (self.placement.on_workers and self.begun):
            return
        hosts = self.placement.on_workers or rank >= FIRST_SERVER
        actions = self.say(Kind.READY, rank, **FACTS, **({"slice": place(rank)} if hosts else {}))
        assert [each.kind for each in actions if isinstance(each, Event)] == [Kind.READY]
        self.ready.add(rank)
        self.expect_starts(actions)

    @rule(data=st.data())
    def get_ready_twice(self, data):
        rank = self.pick(data, lambda rank: rank in self.ready)
        if rank is not None:
            assert self.starts(self.say(Kind.READY, rank, **FACTS)) == ({rank} & self.started)

    @rule()
    def agree(self):
        """The driver begins once all workers are ready, as it does where a plan needs all of them."""
        servers = {rank for rank in self.ranks if rank >= FIRST_SERVER}
        if not self.begun and self.needs_all and set(range(self.workers)) <= self.ready and servers <= self.ever_ready:
            self.begun = True
            self.expect_starts(self.state.start())

    @rule(data=st.data(), kind=st.sampled_from([Kind.BYE, Kind.FAILED]))
    def leave(self, data, kind):
        rank = self.pick(data, lambda rank: rank in self.incarnations and rank not in self.gone)
        if rank is None:
            return
        event, *rest = self.say(kind, rank, error="x")
        assert (event.kind, event.rank) == (kind, rank)
        assert [each.message.kind for each in rest] == ([Kind.STOP] if kind is Kind.FAILED else [])
        self.gone.add(rank)

    @rule(data=st.data(), lap=st.integers(0, 5), values=st.lists(st.floats(-9, 9), max_size=4))
    def report(self, data, lap, values):
        rank = self.pick(data, lambda rank: rank in self.incarnations)
        if rank is None:
            return
        payload = memoryview(np.array(values).tobytes())
        body = {**LAP, "rows": 3, "split": 1, "shapes": [[len(values)]]}
        if lap < self.laps.get(rank, 0):
            self.unheard(Kind.LAP, rank, round_=lap, payload=payload, **body)
            return
        self.laps[rank] = lap + 1
        (event,) = self.say(Kind.LAP, rank, round_=lap, payload=payload, **body)
        assert (event.kind, event.rank, event.round) == (Kind.LAP, rank, lap)
        assert event.said == Lap.of(body)
        np.testing.assert_array_equal(event.arrays[0], values)

    @rule(data=st.data(), first=st.integers(0, 9), count=st.integers(1, 4))
    def report_losses(self, data, first, count):
        """What is repeated is left out, so that a rank's losses come once and in the order of its steps."""
        rank = self.pick(data, lambda rank: rank in self.incarnations)
        if rank is None:
            return
        steps = np.arange(first, first + count, dtype=np.float64)
        payload = memoryview(np.stack([steps, steps + 100], axis=1).tobytes())
        known = self.traced.get(rank, 0)
        if first + count <= known:
            self.unheard(Kind.LOSSES, rank, round_=first, payload=payload)
            return
        (event,) = self.say(Kind.LOSSES, rank, round_=first, payload=payload)
        fresh = steps[steps >= known]
        assert (event.kind, event.rank, event.round) == (Kind.LOSSES, rank, fresh[0])
        np.testing.assert_array_equal(event.arrays[0], np.stack([fresh, fresh + 100], axis=1))
        self.traced[rank] = first + count

    @rule(lap=st.integers(0, 9), last=st.booleans())
    def everyone_hears_the_driver(self, lap, last):
        present = self.incarnations.keys() - self.gone
        for actions, kind in (
            (self.state.go(lap, 0.1, last=last), Kind.GO),
            (self.state.alive(), Kind.ALIVE),
            (self.state.release(), Kind.RELEASE),
        ):
            assert {each.rank for each in actions} == present
            assert {each.message.kind for each in actions} <= {kind}

    @rule(reason=st.sampled_from(["enough", "a failure"]))
    def stop(self, reason):
        if self.begun and self.stopped is None:
            self.stopped = reason
            assert {each.rank for each in self.state.stop(reason)} == self.incarnations.keys() - self.gone

    @rule(data=st.data())
    def talk_nonsense(self, data):
        self.unheard(Kind.HELLO, self.workers, host="x")
        self.unheard(Kind.HELLO, FIRST_SERVER + self.placement.server_tasks, host="x")
        self.unheard(Kind.HELLO, 0, 1 << 40)
        rank = self.pick(data, lambda rank: rank in self.incarnations)
        if rank is None:
            self.unheard(Kind.READY, 0, **FACTS)
            return
        self.unheard(Kind.READY, rank, self.incarnations[rank] + 1, **FACTS)
        if rank not in self.ready and rank < FIRST_SERVER:
            for wrong in ({"rows": -1}, {"rows": "x"}, {"parts": 0}, {"parts": 65}, {"spec": 7}, {"spec": {}}):
                self.unheard(Kind.READY, rank, **{**FACTS, "slice": place(rank), **wrong})
        self.unheard(Kind.FETCH, rank, name="something else")
        self.unheard(Kind.LAP, rank, payload=memoryview(b"12345678"), **{**LAP, "shapes": [[3]]})
        self.unheard(Kind.LAP, rank, shapes=[])
        self.unheard(Kind.LOSSES, rank, payload=memoryview(b"12345678"))
        self.unheard(Kind.LOSSES, rank)
        self.unheard(Kind.PARAMETERS, rank, offset=9, payload=memoryview(np.zeros(2, np.float32)))
        self.unheard(Kind.PUSH, rank)
        self.unheard(Kind.START, rank)

    @invariant()
    def members_are_the_newest_incarnations(self):
        if hasattr(self, "state"):
            assert {rank: each.incarnation for rank, each in self.state.members.items()} == self.incarnations
            assert {rank for rank, each in self.state.members.items() if each.gone} == self.gone
            assert {rank for rank, each in self.state.members.items() if each.started} == self.started


class WithoutWaiting(Job):
    needs_all = False


class OnWorkers(Job):
    placement = placement_of("workers")


class OnServers(Job):
    placement = placement_of(2)


class OnServersWithoutWaiting(OnServers):
    needs_all = False


TestJob = Job.TestCase
TestWithoutWaiting = WithoutWaiting.TestCase
TestOnWorkers = OnWorkers.TestCase
TestOnServers = OnServers.TestCase
TestOnServersWithoutWaiting = OnServersWithoutWaiting.TestCase
for case in (TestJob, TestWithoutWaiting, TestOnWorkers, TestOnServers, TestOnServersWithoutWaiting):
    case.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=40, deadline=None)
del case


def hosted_job(workers):
    state = CoordinatorState(LAYOUT, workers, placement=placement_of("workers"))
    for rank in range(workers):
        state.receive(Message(Kind.HELLO, rank, 1, body={"host": "here"}))
        state.receive(Message(Kind.READY, rank, 1, body={**FACTS, "slice": place(rank)}))
    state.start()
    return state


@given(st.data())
def test_uploads_assemble_in_any_order(data):
    state = hosted_job(3)
    assert {each.rank for each in state.ask_for_parameters()} == {0, 1, 2}
    whole = np.arange(10, dtype=np.float32)
    chunks = []
    for each in state.slices:
        middle = (each.start + each.stop) // 2
        for start, stop in ((each.start, middle), (middle, each.stop)):
            chunks.append((each.host_rank, start, whole[start:stop].copy()))
    sent = dict.fromkeys(range(3), 0)
    for rank, start, values in data.draw(st.permutations(chunks)):
        sent[rank] += 1
        body = {"complete": sent[rank] == 2}
        actions = state.receive(Message(Kind.PARAMETERS, rank, 1, 0, start, body, memoryview(values)))
        assert [each.kind for each in actions] == ([Kind.PARAMETERS] if sent[rank] == 2 else [])
        assert state.uploads_missing == {rank for rank in range(3) if sent[rank] < 2}
    np.testing.assert_array_equal(state.uploaded, whole)


def started_job(workers):
    state = CoordinatorState(LAYOUT, workers)
    state.slices = [SlicePlace(**place(0), start=0, stop=10)]
    for rank in range(workers):
        state.receive(Message(Kind.HELLO, rank, 1, body={"host": "here"}))
        state.receive(Message(Kind.READY, rank, 1, body=FACTS))
    state.start()
    return state


def asked(actions):
    return [each.rank for each in actions if isinstance(each, Send) and each.message.kind is Kind.UPLOAD]


def test_where_everyone_has_the_parameters_another_is_asked_when_the_first_is_lost():
    state = started_job(3)
    assert asked(state.ask_one_for_parameters()) == [0]
    assert asked(state.receive(Message(Kind.HELLO, 0, 2, body={"host": "there"}))) == [1]
    assert state.uploads_missing == {1}
    whole = np.arange(10, dtype=np.float32)
    state.receive(Message(Kind.PARAMETERS, 1, 1, body={"complete": True}, payload=memoryview(whole)))
    assert state.uploads_missing == set()
    np.testing.assert_array_equal(state.uploaded, whole)
    # One that has come back has to be given its state before it can give any.
    assert asked(state.ask_one_for_parameters()) == [1]


def test_the_only_one_is_asked_again_when_it_comes_back():
    state = started_job(1)
    assert asked(state.ask_one_for_parameters()) == [0]
    assert asked(state.receive(Message(Kind.HELLO, 0, 2, body={"host": "there"}))) == [0]


@given(st.permutations(range(3)))
def test_a_norm_is_the_same_sum_in_whatever_order_its_parts_come(order):
    state = hosted_job(3)
    parts = [0.1, 1e16, -1e16]
    for rank in order[:2]:
        assert state.receive(Message(Kind.NORM, rank, 1, 4, body={"value": parts[rank]})) == []
    answers = state.receive(Message(Kind.NORM, order[2], 1, 4, body={"value": parts[order[2]]}))
    assert {each.rank for each in answers} == {0, 1, 2}
    assert {each.message.body["value"] for each in answers} == {0.1 + 1e16 - 1e16}
    assert {each.message.round for each in answers} == {4}


def test_what_a_rank_left_is_given_back_to_it_when_it_returns():
    state = hosted_job(2)
    left = bytes(range(100))
    body = {"for": 0, "size": 100, "arrays": [["uint8", [100]]]}
    for start in (60, 0):
        piece = memoryview(left[start : start + 60])
        done = {**body, "complete": start == 0}
        assert state.receive(Message(Kind.STATE, 0, 1, 7, start, done, piece)) == []
    state.receive(Message(Kind.HELLO, 0, 2, body={"host": "there"}))
    (held,) = state.receive(Message(Kind.ASK, 0, 2, 9, body={"from_others": False}))
    assert (held.message.kind, held.message.round, held.message.body["size"]) == (Kind.HELD, 7, 100)
    (blob,) = state.receive(Message(Kind.FETCH, 0, 2, body={"name": "state"}))
    assert bytes(blob.message.payload) == left


def last_words(state, round_):
    """The state that rank 0's first incarnation leaves when it is told to go."""
    body = {"for": 0, "size": 3, "arrays": [["uint8", [3]]], "complete": True}
    return state.receive(Message(Kind.STATE, 0, 1, round_, body=body, payload=memoryview(b"abc")))


def superseded_job():
    """Rank 0 was started twice; rank 1 trains, as far as anybody knows."""
    state = started_job(2)
    _, _, stop = state.receive(Message(Kind.HELLO, 0, 2, body={"host": "here", "mark": None}))
    assert (stop.to_former, stop.message.body["reason"]) == (True, SUPERSEDED)
    return state


def test_the_last_words_of_one_whose_rank_was_taken_are_for_the_one_that_took_it():
    state = superseded_job()
    assert last_words(state, 7) == []
    (held,) = state.receive(Message(Kind.ASK, 0, 2, 7, body={"from_others": True}))
    assert (held.message.kind, held.message.round, held.message.body["size"]) == (Kind.HELD, 7, 3)


def test_last_words_that_come_late_are_handed_over_when_they_come():
    state = superseded_job()
    (asked_for,) = state.receive(Message(Kind.ASK, 0, 2, 7, body={"from_others": True}))
    assert (asked_for.rank, asked_for.message.kind) == (1, Kind.SNAPSHOT)
    (held,) = last_words(state, 7)
    assert (held.rank, held.message.kind, held.message.round) == (0, Kind.HELD, 7)


def test_last_words_of_another_round_do_not_keep_a_live_worker_from_being_asked():
    state = superseded_job()
    assert last_words(state, 6) == []
    (asked_for,) = state.receive(Message(Kind.ASK, 0, 2, 7, body={"from_others": True}))
    assert (asked_for.rank, asked_for.message.kind) == (1, Kind.SNAPSHOT)


@pytest.mark.parametrize("size", [-1, 1 << 39, 1 << 41, "x"])
def test_a_state_of_no_possible_size_is_not_taken(size):
    state = hosted_job(2)
    body = {"for": 0, "size": size, "arrays": [], "complete": True}
    assert state.receive(Message(Kind.STATE, 0, 1, 7, 1 << 50, body, memoryview(b"x"))) == []
    assert state.dropped == 1


def test_a_norm_from_one_that_hosts_nothing_is_not_taken():
    state = CoordinatorState(LAYOUT, 1)
    state.receive(Message(Kind.HELLO, 0, 1, body={"host": "here"}))
    assert state.receive(Message(Kind.NORM, 0, 1, 0, body={"value": 1.0})) == []
    assert state.dropped == 1


@pytest.mark.parametrize("start", [0, CHUNK_BYTES, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 5, 9 * CHUNK_BYTES])
def test_a_blob_is_given_in_pieces(start):
    blob = np.random.default_rng(0).bytes(2 * CHUNK_BYTES + 5)
    state = CoordinatorState(LAYOUT, 1, blobs={"job": lambda: memoryview(blob)})
    state.receive(Message(Kind.HELLO, 0, 1, body={"host": "here"}))
    (answer,) = state.receive(Message(Kind.FETCH, 0, 1, offset=start, body={"name": "job"}))
    assert bytes(answer.message.payload) == blob[start : start + CHUNK_BYTES]


def left_out(state, rank):
    """The kinds of what everyone is told when a rank is left out."""
    return [(each.rank, each.message.kind) for each in state.leave_out(rank)]


SPOKEN = [kind for kind in Kind if kind < Kind.WELCOME]


@pytest.mark.parametrize("incarnation", [1, 2])
@pytest.mark.parametrize("kind", SPOKEN)
def test_one_that_was_left_out_is_told_so_whatever_it_says(kind, incarnation):
    state = started_job(2)
    assert left_out(state, 1) == [(1, Kind.STOP)]
    (stop,) = state.receive(Message(kind, 1, incarnation, body={**FACTS, "host": "there"}))
    assert (stop.to_sender, stop.message.kind, stop.message.body) == (True, Kind.STOP, {"reason": LEFT_OUT})
    assert state.members[1].incarnation == 1
    assert {each.rank for each in state.alive()} == {0}


def test_who_waited_for_one_that_is_left_out_is_served_by_another():
    state = started_job(3)
    assert not state.uploader_left_out
    assert asked(state.ask_one_for_parameters()) == [0]
    assert asked(state.leave_out(0)) == [1]
    assert state.uploader_left_out
    assert asked(state.ask_one_for_parameters()) == [1]
    state.receive(Message(Kind.HELLO, 2, 2, body={"host": "there"}))
    state.receive(Message(Kind.READY, 2, 2, body=FACTS))
    (snapshot,) = state.receive(Message(Kind.ASK, 2, 2, 5, body={"from_others": True}))
    assert (snapshot.rank, snapshot.message.kind) == (1, Kind.SNAPSHOT)


def test_hosts_of_slices_are_told_who_is_left_out():
    state = CoordinatorState(LAYOUT, 2, placement=placement_of(2))
    for rank in (0, 1, FIRST_SERVER, FIRST_SERVER + 1):
        state.receive(Message(Kind.HELLO, rank, 1, body={"host": "here"}))
        state.receive(Message(Kind.READY, rank, 1, body={**FACTS, "slice": place(rank)}))
    state.start()
    told = left_out(state, 1)
    assert told == [(1, Kind.STOP), (FIRST_SERVER, Kind.REMOVE), (FIRST_SERVER + 1, Kind.REMOVE)]


@pytest.mark.parametrize("begun", [False, True])
def test_the_rows_of_one_that_is_left_out_count_only_where_the_others_have_counted_on_them(begun):
    state = CoordinatorState(LAYOUT, 2)
    state.slices = [SlicePlace(**place(0), start=0, stop=10)]
    for rank in range(2):
        state.receive(Message(Kind.HELLO, rank, 1, body={"host": "here"}))
        state.receive(Message(Kind.READY, rank, 1, body=FACTS))
    if begun:
        state.start()
    state.leave_out(1)
    assert state.start_of(0).rows == ({0: 10, 1: 10} if begun else {0: 10})


def test_signs_of_life_are_counted_and_what_is_malformed_is_dropped():
    state = started_job(1)
    before = state.signs[0]
    assert state.receive(Message(Kind.PULSE, 0, 1, 3, body=Tally(round=3, rows=30, busy=2.5).to_json())) == []
    assert state.signs[0] == before + 1
    assert (state.tally(0).round, state.tally(0).rows) == (3, 30)
    for wrong in ({}, {**Tally().to_json(), "rows": -1}, {**Tally().to_json(), "busy": "nan"}):
        dropped = state.dropped
        assert state.receive(Message(Kind.PULSE, 0, 1, body=wrong)) == []
        assert state.dropped == dropped + 1
    assert state.tally(0).rows == 30


def test_what_an_earlier_incarnation_has_done_is_not_forgotten():
    state = started_job(1)
    state.receive(Message(Kind.PULSE, 0, 1, body=Tally(round=3, rows=30, steps=3, timed=2, busy=2.5).to_json()))
    state.receive(Message(Kind.HELLO, 0, 2, body={"host": "there"}))
    assert state.tally(0).rows == 30
    state.receive(Message(Kind.PULSE, 0, 2, body=Tally(round=4, rows=10, steps=4, timed=1, busy=0.5).to_json()))
    told = state.tally(0)
    assert (told.round, told.rows, told.steps, told.timed, told.busy) == (4, 40, 4, 3, 3.0)
    # One that was overtaken on its way changes nothing.
    state.receive(Message(Kind.PULSE, 0, 2, body=Tally(round=3, rows=5, steps=3).to_json()))
    assert state.tally(0) == told
