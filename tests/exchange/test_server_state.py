"""The server's logic under any order of messages: nothing lost, nothing twice, no round closed early."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from keraunos.exchange.server_state import Event, Send, ServerState
from keraunos.exchange.wire import Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("w",), ((4,),), trainable=1)
SPEC = {"inputs": [[4], "float32"], "targets": None, "weighted": False}


class Exchange(RuleBasedStateMachine):
    """Workers that contribute, pass, repeat themselves, come twice and talk nonsense."""

    plan = ExchangePlan.named("averaging")

    @initialize(workers=st.integers(1, 4))
    def begin(self, workers):
        self.workers = workers
        self.buffers = {rank: np.zeros(LAYOUT.size, np.float32) for rank in range(workers)}
        parameters = np.zeros(LAYOUT.size, np.float32)
        self.state = ServerState(self.plan, workers, LAYOUT, parameters, parameters, self.buffers.__getitem__)
        self.rounds = dict.fromkeys(range(workers), 0)
        self.open = {}
        self.applied = []
        self.expected = np.zeros(LAYOUT.size)
        for rank in range(workers):
            self.say(Kind.HELLO, rank, host="here")
            body = {"rows": 10, "validation_rows": 0, "spec": SPEC, "digest": "", "parts": 1}
            self.say(Kind.READY, rank, **body)
        self.state.start()

    def say(self, kind, rank, round_=0, incarnation=7, payload=None, **body):
        return self.state.receive(Message(kind, rank, incarnation, round_, 0, body, payload))

    def results(self, actions):
        return {each.rank for each in actions if isinstance(each, Send) and each.message.kind is Kind.RESULT}

    @rule(data=st.data(), value=st.integers(-3, 3), rows=st.integers(1, 5))
    def contribute(self, data, value, rows):
        rank = data.draw(st.sampled_from([each for each in range(self.workers) if each not in self.open] or [None]))
        if rank is None:
            return
        sent = np.full(LAYOUT.size, value * rows, np.float32)
        actions = self.say(
            Kind.PUSH, rank, self.rounds[rank], payload=memoryview(sent.tobytes()), denominators=[1], rows=rows
        )
        self.open[rank] = (value, rows)
        self.follow(actions)

    @rule(data=st.data())
    def step_aside(self, data):
        rank = data.draw(st.sampled_from([each for each in range(self.workers) if each not in self.open] or [None]))
        if rank is None or not self.plan.synchronous:
            return
        actions = self.say(Kind.PASS, rank, self.rounds[rank])
        self.open[rank] = None
        self.follow(actions)

    def follow(self, actions):
        if not self.plan.synchronous:
            ((rank, (value, _)),) = self.open.items()
            assert self.results(actions) == {rank}
            self.expected -= value / self.workers
            self.rounds[rank] += 1
            self.open = {}
        elif len(self.open) == self.workers:
            assert self.results(actions) == set(range(self.workers))
            given = [each for each in self.open.values() if each is not None]
            if given:
                self.expected -= np.average([value for value, _ in given], weights=[rows for _, rows in given])
            self.rounds = {rank: number + 1 for rank, number in self.rounds.items()}
            self.open = {}
        else:
            assert not self.results(actions), "a round closed before everyone had sent"

    @precondition(lambda self: any(self.rounds.values()))
    @rule(data=st.data(), kind=st.sampled_from([Kind.PUSH, Kind.PASS]))
    def repeat_the_last_round(self, data, kind):
        rank = data.draw(st.sampled_from([each for each, number in self.rounds.items() if number] or [None]))
        sent = np.full(LAYOUT.size, 1000, np.float32)
        actions = self.say(
            kind, rank, self.rounds[rank] - 1, payload=memoryview(sent.tobytes()), denominators=[1], rows=1
        )
        assert self.results(actions) == {rank}, "a repeated contribution is answered"

    @rule(data=st.data(), far=st.integers(2, 9))
    def speak_out_of_turn(self, data, far):
        rank = data.draw(st.integers(0, self.workers - 1))
        dropped = self.state.dropped
        sent = np.full(LAYOUT.size, 1000, np.float32)
        body = {"payload": memoryview(sent.tobytes()), "denominators": [1], "rows": 1}
        assert self.say(Kind.PUSH, rank, self.rounds[rank] + far, **body) == []
        assert not self.results(self.say(Kind.PUSH, rank, self.rounds[rank], incarnation=6, **body))
        assert self.say(Kind.PUSH, self.workers + 3, 0, **body) == []
        assert self.say(Kind.EPOCH, rank, 0, shapes="nonsense") == []
        assert self.say(Kind.WELCOME, rank, 0) == []
        assert self.state.dropped == dropped + 5

    @invariant()
    def parameters_are_the_sum_of_what_was_sent_once(self):
        if hasattr(self, "state"):
            np.testing.assert_allclose(self.state.parameters, self.expected, rtol=1e-4, atol=1e-4)


class Asynchronous(Exchange):
    plan = ExchangePlan.named("downpour")


TestSynchronous = Exchange.TestCase
TestAsynchronous = Asynchronous.TestCase
TestSynchronous.settings = TestAsynchronous.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def joined(plan, workers=2):
    buffers = {rank: np.zeros(LAYOUT.size, np.float32) for rank in range(workers)}
    parameters = np.zeros(LAYOUT.size, np.float32)
    state = ServerState(ExchangePlan.named(plan), workers, LAYOUT, parameters, parameters, buffers.__getitem__)
    for rank in range(workers):
        state.receive(Message(Kind.HELLO, rank, 1, body={"host": "here"}))
    return state


def test_a_newer_incarnation_takes_the_rank_and_the_older_is_told_to_stop():
    state = joined("averaging")
    actions = state.receive(Message(Kind.HELLO, 0, 2, body={"host": "there"}))
    assert [action.body["again"] for action in actions if isinstance(action, Event)] == [True]
    answer = state.receive(Message(Kind.PUSH, 0, 1, 0))
    assert [action.message.kind for action in answer] == [Kind.STOP]
    assert answer[0].message.body["reason"] == "superseded"


def test_a_stopped_server_stops_whoever_comes_later():
    state = joined("averaging")
    assert {action.rank for action in state.stop("enough")} == {0, 1}
    actions = state.receive(Message(Kind.HELLO, 1, 5, body={"host": "here"}))
    assert [action.message.kind for action in actions] == [Kind.STOP]


def test_a_contribution_in_chunks_counts_when_it_is_complete_in_any_order():
    state = joined("averaging", workers=1)
    body = {"rows": 1, "validation_rows": 0, "spec": SPEC, "digest": "", "parts": 1}
    state.receive(Message(Kind.READY, 0, 1, body=body))
    state.start()
    second = np.array([3, 4], np.float32)
    first = np.array([1, 2], np.float32)
    last = {"denominators": [1], "rows": 1}
    assert state.receive(Message(Kind.PUSH, 0, 1, 0, 2, last, memoryview(second.tobytes()))) == []
    assert state.receive(Message(Kind.PUSH, 0, 1, 0, 2, last, memoryview(second.tobytes()))) == []
    (answer,) = state.receive(Message(Kind.PUSH, 0, 1, 0, 0, {}, memoryview(first.tobytes())))
    assert answer.message.kind is Kind.RESULT
    np.testing.assert_array_equal(state.parameters, [-1, -2, -3, -4])
