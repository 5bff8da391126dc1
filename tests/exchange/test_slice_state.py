"""A slice's logic under any order of messages: nothing lost or twice, no round early, nobody too far, no deadlock.

The machine drives ranks as real workers behave (and misbehave): they join, push in chunks in any order, repeat
themselves, die half-way, come back as a newer incarnation that repeats its open round while the older still speaks,
and leave. Beside it runs a plain model of what should come of it.
"""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from keraunos.exchange import wire
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.sharding import Slice
from keraunos.exchange.slice_state import Offer, Reply, SliceState
from keraunos.exchange.wire import Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "s"), ((4,), (1,)), trainable=1)
PART = Slice(LAYOUT, 0, LAYOUT.size)
CHUNKS = (0, 2, 4)
POISON = np.float32(1e6)


@pytest.fixture(autouse=True, scope="module")
def _chunks_of_two_values():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "CHUNK_BYTES", 8)
        yield


class Worker:
    """One rank as it sees itself. `may_push`: it has what it needs for the round it is at."""

    def __init__(self):
        self.incarnation = 0
        self.alive = False
        self.round = 0
        self.may_push = False
        self.sent = {}
        self.values = None
        self.rows = 0
        self.passed = False

    def begin_round(self, round_):
        self.round = round_
        self.may_push = True
        self.sent = {}
        self.values = None
        self.passed = False

    @property
    def complete(self):
        return self.passed or len(self.sent) == len(CHUNKS)


class Exchange(RuleBasedStateMachine):
    """Any plan; a subclass names it and says in `apply` what a round's contributions do to the parameters."""

    plan = ExchangePlan("updates", 1, "synchronous", "mean")

    @initialize(workers=st.integers(1, 4))
    def begin(self, workers):
        self.count = workers
        self.buffers = {}
        self.parameters = np.full(LAYOUT.size, 5, np.float32)
        rule_ = make_rule(self.plan, PART, workers)
        self.result = self.parameters if rule_.gives_parameters else np.zeros(LAYOUT.size, np.float32)
        self.state = SliceState(
            self.plan,
            PART,
            rule_,
            self.parameters,
            self.result,
            buffer_of=self.buffers.__getitem__,
            decode=codec_named("plain").decode,
        )
        self.workers = {rank: Worker() for rank in range(workers)}
        self.ranks = set(range(workers))
        self.left = set()
        # The model: parameters, each rank's finished rounds, complete contributions of a round that is open,
        # who waits to be let on, and what was applied when a rank last got parameters.
        self.expected = np.full(LAYOUT.size, 5.0)
        self.expected_result = self.expected.copy()
        self.finished = dict.fromkeys(range(workers), 0)
        self.open = {}
        self.waiting = set()
        self.applied = 0
        self.read_at = dict.fromkeys(range(workers), 0)
        if self.plan.waits:
            assert self.state.expect(range(workers)) == []

    # What the rule does, in plain arithmetic: given [(values, rows, staleness)].

    def apply(self, sent):
        self.expected -= np.average([v for v, _, _ in sent], axis=0, weights=[rows for _, rows, _ in sent])
        self.expected_result = self.expected.copy()

    def apply_nothing(self):
        """Everyone has passed: workers get the parameters, where the slice has them."""
        if not self.plan.applies_on_workers:
            self.expected_result = self.expected.copy()

    # Speaking to the slice, and checking what it says.

    def say(self, kind, rank, round_=0, offset=0, incarnation=None, payload=None, **body):
        number = self.workers[rank].incarnation if incarnation is None and rank in self.workers else incarnation or 1
        actions = self.state.receive(Message(kind, rank, number, round_, offset, body, payload))
        for action in actions:
            if isinstance(action, Offer):
                self.buffers[action.rank] = np.full(action.length, np.nan, np.float32)
        return actions

    def answers(self, actions):
        """Which ranks get which round's result; all other actions must be none."""
        found = {}
        for each in actions:
            assert isinstance(each, Reply), each
            assert each.message.kind is Kind.RESULT
            assert not each.to_sender
            given = self.parameters if each.message.body.get("first") else self.result
            assert each.vector is (None if each.message.body.get("empty") else given)
            assert bool(each.message.body.get("empty")) == self.state.empty
            assert each.message.rank not in found, "answered twice"
            assert each.message.incarnation == self.workers[each.message.rank].incarnation
            found[each.message.rank] = each.message.round
        return found

    def unheard(self, *arguments, **named):
        """Say something that is not taken: it is counted, and nobody is answered."""
        dropped = self.state.dropped
        assert self.say(*arguments, **named) == []
        assert self.state.dropped == dropped + 1

    def let_on(self, answered):
        """These ranks got the result of their last round, or, come back, the parameters for the next."""
        for rank, round_ in answered.items():
            worker = self.workers[rank]
            self.read_at[rank] = self.applied
            if not worker.alive:
                continue
            worker.begin_round(self.finished[rank])
            assert round_ in {self.finished[rank] - 1, self.finished[rank]}

    def follow(self, rank, actions):
        """What should come of `rank` having completed its contribution (or of its going, with `None`)."""
        answered = self.answers(actions)
        if self.plan.synchronous:
            expected = self.close_round()
        else:
            expected = self.apply_one(rank) if rank is not None else set()
            if self.plan.meet == "bounded":
                expected = self.release()
        assert answered.keys() == expected, (answered, expected)
        self.let_on(answered)

    def close_round(self):
        if not self.ranks or not self.ranks <= self.open.keys():
            return set()
        sent = [self.open[rank] for rank in sorted(self.ranks) if self.open[rank] is not None]
        if sent:
            self.apply([(values, rows, 0) for values, rows in sent])
        else:
            self.apply_nothing()
        assert self.state.empty == (not sent and self.plan.applies_on_workers)
        self.applied += len(sent)
        for rank in self.ranks:
            self.finished[rank] += 1
        self.open = {}
        return set(self.ranks)

    def apply_one(self, rank):
        sent = self.open.pop(rank)
        if sent is None:
            self.apply_nothing()
        else:
            self.apply([(*sent, self.applied - self.read_at[rank])])
            self.applied += 1
        self.finished[rank] += 1
        self.waiting.add(rank)
        self.workers[rank].may_push = False
        if self.plan.meet == "bounded":
            return set()
        self.waiting.discard(rank)
        return {rank}

    def release(self):
        slowest = min((self.finished[rank] for rank in self.ranks), default=0)
        freed = {rank for rank in self.waiting if self.finished[rank] - slowest <= self.allowed}
        self.waiting -= freed
        return freed

    @property
    def allowed(self):
        """A worker that goes on while its contribution travels is one round further than what it has finished."""
        return self.plan.bound - (1 if self.plan.overlaps else 0)

    def some(self, data, condition):
        """A rank of which the condition holds, or None."""
        found = [rank for rank, worker in self.workers.items() if condition(rank, worker)]
        return data.draw(st.sampled_from(found)) if found else None

    # What ranks do.

    @rule(data=st.data())
    def join(self, data):
        rank = self.some(data, lambda rank, worker: not worker.alive and rank not in self.left)
        if rank is not None:
            self.come(rank)

    def come(self, rank):
        worker = self.workers[rank]
        worker.incarnation += 1
        worker.alive = True
        worker.may_push = False
        wants = not self.plan.synchronous
        offer, joined, *rest = self.say(Kind.JOIN, rank, parts=1, mark=None, wants_parameters=wants)
        assert offer == Offer(rank, LAYOUT.size)
        assert joined.message.kind is Kind.JOINED
        assert joined.message.round == self.finished[rank]
        self.open.pop(rank, None)
        answered = self.answers(rest)
        assert answered.keys() == ({rank} if wants and rank not in self.waiting else set())
        worker.begin_round(self.finished[rank])
        worker.may_push = rank not in self.waiting
        if answered:
            self.read_at[rank] = self.applied

    @rule(data=st.data())
    def die(self, data):
        rank = self.some(data, lambda rank, worker: worker.alive)
        if rank is not None:
            self.workers[rank].alive = False

    @rule(data=st.data(), order=st.permutations(range(3)), count=st.integers(1, 3))
    def push(self, data, order, count):
        rank = self.some(data, lambda rank, worker: worker.alive and worker.may_push and not worker.complete)
        if rank is not None:
            self.draw_contribution(data, rank)
            self.push_chunks(rank, order, count)

    def draw_contribution(self, data, rank):
        worker = self.workers[rank]
        if worker.values is None:
            worker.values = np.float32(data.draw(st.lists(st.integers(-8, 8), min_size=5, max_size=5)))
            worker.rows = data.draw(st.integers(1, 4))

    def push_chunks(self, rank, order, count):
        worker = self.workers[rank]
        sent = worker.values * np.float32(worker.rows)
        for index in [each for each in order if each not in worker.sent][:count]:
            start = CHUNKS[index]
            chunk = sent[start : start + 2].copy()
            body = {"denominators": [float(worker.rows)], "rows": worker.rows} if index == 2 else {}
            worker.sent[index] = True
            actions = self.say(Kind.PUSH, rank, worker.round, start, payload=memoryview(chunk), **body)
            # The message's memory is not the slice's: what comes later must not change it.
            chunk.fill(POISON)
            if not worker.complete:
                assert actions == [], "answered before everything was sent"
                continue
            self.open[rank] = (worker.values.astype(float), worker.rows)
            self.follow(rank, actions)

    @rule(data=st.data())
    def pass_by(self, data):
        rank = self.some(data, lambda rank, worker: worker.alive and worker.may_push and not worker.sent)
        if rank is None or self.workers[rank].passed:
            return
        self.workers[rank].passed = True
        self.open[rank] = None
        self.follow(rank, self.say(Kind.PASS, rank, self.workers[rank].round))

    @rule(data=st.data())
    def leave(self, data):
        """A worker leaves when it has the result of its last round; the last of all stays, to see what happens."""
        rank = self.some(data, lambda rank, worker: worker.alive and worker.may_push and not worker.sent)
        if rank is not None and rank not in self.open and len(self.workers) - len(self.left) > 1:
            self.go(rank, lambda: self.say(Kind.LEAVE, rank))

    @rule(data=st.data())
    def go_on_without_the_dead(self, data):
        rank = self.some(data, lambda rank, worker: not worker.alive and rank not in self.left)
        if rank is not None and len(self.workers) - len(self.left) > 1:
            self.go(rank, lambda: self.state.remove(rank))

    @rule(data=st.data(), kind=st.sampled_from([Kind.PUSH, Kind.PASS, Kind.AGAIN, Kind.LEAVE, Kind.JOIN]))
    def leave_one_out_for_good(self, data, kind):
        """Whoever was away for too long changes nothing any more, also where it only stood still."""
        rank = self.some(data, lambda rank, worker: rank not in self.left)
        if rank is None or len(self.workers) - len(self.left) < 2:
            return
        worker = self.workers[rank]
        self.go(rank, lambda: self.state.exclude(rank))
        body = {"payload": memoryview(np.full(2, POISON)), "parts": 1, "rows": 1, "denominators": [1.0]}
        (refused,) = self.say(kind, rank, worker.round, 0, incarnation=worker.incarnation + (kind is Kind.JOIN), **body)
        assert refused.message.kind is Kind.REFUSED
        assert refused.message.body["reason"] == wire.LEFT_OUT
        assert refused.to_sender

    def go(self, rank, how):
        self.workers[rank].alive = False
        self.left.add(rank)
        self.open.pop(rank, None)
        self.waiting.discard(rank)
        if self.plan.waits:
            self.ranks.discard(rank)
        self.follow(None, how())

    # What should change nothing.

    @rule(data=st.data())
    def repeat_a_chunk(self, data):
        rank = self.some(data, lambda rank, worker: worker.alive and worker.may_push and worker.sent)
        if rank is None or (self.workers[rank].complete and rank not in self.open):
            return
        index = data.draw(st.sampled_from(sorted(self.workers[rank].sent)))
        payload = memoryview(np.full(2 if index < 2 else 1, POISON))
        self.unheard(Kind.PUSH, rank, self.workers[rank].round, CHUNKS[index], payload=payload)

    @rule(data=st.data(), kind=st.sampled_from([Kind.PUSH, Kind.PASS]), back=st.integers(1, 3))
    def repeat_an_old_round(self, data, kind, back):
        rank = self.some(data, lambda rank, worker: worker.alive and self.finished[rank] >= back)
        if rank is None:
            return
        body = {"payload": memoryview(np.full(1, POISON)), "denominators": [1.0], "rows": 1}
        round_ = self.finished[rank] - back
        if back > 1 or rank in self.waiting:
            self.unheard(kind, rank, round_, 4, **body)
            return
        answered = self.answers(self.say(kind, rank, round_, 4, **body))
        assert answered == {rank: round_}, "a repetition is answered as the first time"
        self.read_at[rank] = self.applied

    @rule(data=st.data(), lost=st.booleans())
    def ask_again(self, data, lost):
        """A result that was lost is given again; a contribution that is not whole is asked for; nothing moves."""
        rank = self.some(data, lambda rank, worker: worker.alive and self.finished[rank] >= lost)
        if rank is None:
            return
        round_ = self.finished[rank] - lost
        dropped = self.state.dropped
        actions = self.say(Kind.AGAIN, rank, round_)
        assert self.state.dropped == dropped
        if rank in self.waiting and lost:
            assert actions == []
        elif lost:
            assert self.answers(actions) == {rank: round_}
            self.read_at[rank] = self.applied
        elif rank in self.open:
            assert actions == []
        else:
            (resend,) = actions
            assert (resend.message.kind, resend.message.round) == (Kind.RESEND, round_)
        self.unheard(Kind.AGAIN, rank, self.finished[rank] + 1)

    @rule(data=st.data())
    def join_twice(self, data):
        rank = self.some(data, lambda rank, worker: worker.alive)
        if rank is not None:
            (joined,) = self.say(Kind.JOIN, rank, parts=1, mark=None)
            assert joined.message.round == self.finished[rank]

    @rule(data=st.data(), kind=st.sampled_from([Kind.PUSH, Kind.PASS, Kind.LEAVE, Kind.JOIN]))
    def speak_as_an_older_incarnation(self, data, kind):
        rank = self.some(data, lambda rank, worker: worker.incarnation > 1)
        if rank is None:
            return
        worker = self.workers[rank]
        body = {"payload": memoryview(np.full(2, POISON)), "parts": 1, "wants_parameters": True}
        (refused,) = self.say(kind, rank, worker.round, 0, incarnation=worker.incarnation - 1, **body)
        assert refused.message.kind is Kind.REFUSED
        assert refused.to_sender

    @rule(data=st.data(), far=st.integers(1, 9))
    def push_ahead_of_time(self, data, far):
        rank = self.some(data, lambda rank, worker: worker.alive)
        if rank is not None:
            payload = memoryview(np.full(2, POISON))
            self.unheard(Kind.PUSH, rank, self.finished[rank] + far, 0, payload=payload)

    @rule(data=st.data())
    def push_without_waiting(self, data):
        rank = self.some(data, lambda rank, worker: worker.alive and rank in self.waiting)
        if rank is not None:
            self.unheard(Kind.PUSH, rank, self.finished[rank], 0, payload=memoryview(np.full(2, POISON)))

    @rule(data=st.data())
    def talk_nonsense(self, data):
        rank = self.some(data, lambda rank, worker: worker.alive and not worker.complete and rank not in self.waiting)
        self.unheard(Kind.JOIN, self.count, parts=1)
        self.unheard(Kind.PUSH, self.count + 3, 0, payload=memoryview(np.full(2, POISON)))
        if rank is None:
            return
        worker = self.workers[rank]
        newer = worker.incarnation + 1
        missing = next(CHUNKS[index] for index in range(3) if index not in worker.sent)
        poison = memoryview(np.full(2, POISON))
        self.unheard(Kind.PUSH, rank, worker.round, missing, incarnation=newer, payload=poison)
        self.unheard(Kind.PUSH, rank, worker.round, 1, payload=poison)
        self.unheard(Kind.PUSH, rank, worker.round, 6, payload=poison)
        self.unheard(Kind.PUSH, rank, worker.round, missing, payload=memoryview(b"abc"))
        self.unheard(Kind.PUSH, rank, worker.round, missing, payload=poison, rows=1, denominators=[1.0, 2.0])
        self.unheard(Kind.PUSH, rank, worker.round, missing, payload=poison, rows="many", denominators=[1.0])
        self.unheard(Kind.JOIN, rank, incarnation=newer, parts=0)
        self.unheard(Kind.JOIN, rank, incarnation=newer, parts="x")
        self.unheard(Kind.WELCOME, rank)

    @rule(data=st.data())
    def everyone_pushes(self, data):
        """No deadlock: once all who take part are here, someone can always go on, and in the end all are answered."""
        present = [rank for rank in self.workers if rank not in self.left]
        for rank in present:
            if not self.workers[rank].alive:
                self.come(rank)
        target = max(self.finished[rank] for rank in present) + 1
        while behind := [rank for rank in present if self.finished[rank] < target]:
            can = [rank for rank in behind if self.workers[rank].may_push and not self.workers[rank].complete]
            assert can, "nobody can go on"
            for rank in can:
                self.draw_contribution(data, rank)
                self.push_chunks(rank, range(3), 3)
        assert all(self.workers[rank].may_push for rank in present), "everyone has pushed, but not everyone is answered"

    # What always holds.

    @invariant()
    def what_was_sent_was_applied_once(self):
        if hasattr(self, "state"):
            np.testing.assert_allclose(self.parameters, self.expected, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(
                self.result, self.expected_result if self.applied else self.result, rtol=1e-3, atol=1e-3
            )
            assert self.state.applied == self.applied
            assert {rank: member.round for rank, member in self.state.members.items()}.items() <= self.finished.items()

    @invariant()
    def nobody_is_past_the_bound(self):
        if not hasattr(self, "state") or self.plan.meet != "bounded":
            return
        slowest = min((self.finished[rank] for rank in self.ranks), default=0)
        for rank in self.ranks:
            ahead = self.finished[rank] - slowest
            assert ahead <= self.allowed + (rank in self.waiting), f"rank {rank} is {ahead} rounds ahead"


class Sum(Exchange):
    plan = ExchangePlan("updates", 1, "synchronous", "sum")

    def apply(self, sent):
        self.expected[:4] -= sum(values for values, _, _ in sent)[:4]
        self.expected[4:] -= np.average([v for v, _, _ in sent], axis=0, weights=[rows for _, rows, _ in sent])[4:]
        self.expected_result = self.expected.copy()


class MeanWeights(Exchange):
    plan = ExchangePlan("weights", 1, "synchronous", "mean")

    def apply(self, sent):
        self.expected[:] = np.average([v for v, _, _ in sent], axis=0, weights=[rows for _, rows, _ in sent])
        self.expected_result = self.expected.copy()


class Gradients(Exchange):
    plan = ExchangePlan("gradients", 1, "synchronous", "own")

    def apply(self, sent):
        self.expected_result = np.average([v for v, _, _ in sent], axis=0, weights=[rows for _, rows, _ in sent])


class Add(Exchange):
    plan = ExchangePlan("updates", 1, "asynchronous", "add")

    def apply(self, sent):
        ((values, _, staleness),) = sent
        self.expected -= values * self.plan.factor(self.count, staleness)
        self.expected_result = self.expected.copy()


class AddByStaleness(Add):
    plan = ExchangePlan("updates", 1, "asynchronous", "add", scale="staleness")


class Hogwild(Add):
    plan = ExchangePlan("updates", 1, "hogwild", "add", scale=1)


class MovingAverage(Exchange):
    plan = ExchangePlan("weights", 1, "asynchronous", "moving_average(3)")

    def apply(self, sent):
        self.expected += (sent[0][0] - self.expected) / 3
        self.expected_result = self.expected.copy()


class Elastic(Exchange):
    plan = ExchangePlan("weights", 1, "asynchronous", "elastic(0.25)")

    def apply(self, sent):
        self.expected_result = self.expected.copy()
        self.expected += 0.25 * sum(values - self.expected_result for values, _, _ in sent)


class SynchronousElastic(Elastic):
    plan = ExchangePlan("weights", 1, "synchronous", "elastic(0.25)")


class LockStep(Add):
    plan = ExchangePlan("updates", 1, "bounded(0)", "add")


class Bounded(Add):
    plan = ExchangePlan("updates", 1, "bounded(1)", "add", scale="staleness")


class FarBounded(Add):
    plan = ExchangePlan("updates", 1, "bounded(3)", "add")


class BoundedWeights(MovingAverage):
    plan = ExchangePlan("weights", 1, "bounded(1)", "moving_average(3)")


class BoundedElastic(Elastic):
    plan = ExchangePlan("weights", 1, "bounded(2)", "elastic(0.25)")


def cases():
    machines = [Exchange]
    for each in machines:
        machines.extend(each.__subclasses__())
    return machines


for machine in cases():
    case = machine.TestCase
    case.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=40, deadline=None)
    globals()[f"Test{machine.__name__}"] = case
del case


def test_one_that_comes_back_gets_no_further_ahead_than_the_bound():
    machine = LockStep()
    machine.begin(workers=2)
    for rank in range(2):
        machine.come(rank)
        machine.workers[rank].values, machine.workers[rank].rows = np.ones(5, np.float32), 1
    machine.push_chunks(0, range(3), 3)
    assert machine.waiting == {0}
    machine.come(0)
    machine.unheard(Kind.PUSH, 0, 1, 0, payload=memoryview(np.full(2, POISON)))
    machine.push_chunks(1, range(3), 3)
    assert all(worker.may_push for worker in machine.workers.values())
    np.testing.assert_allclose(machine.parameters, [4] * 5)
