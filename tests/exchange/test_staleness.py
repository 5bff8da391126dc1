"""How stale a contribution was is answered with the parameters that it led to."""

import numpy as np
import pytest

from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.messages import RoundResult
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.sharding import Slice
from keraunos.exchange.slice_state import Reply, SliceState
from keraunos.exchange.wire import Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

ONE = memoryview(np.ones(1, np.float32))


class Added:
    """The state of a slice whose contributions are added one at a time."""

    def __init__(self, meet):
        plan = ExchangePlan("updates", 1, meet, "add", scale=1)
        part = Slice(Layout(("w",), ((1,),), trainable=1), 0, 1)
        self.buffers = {}
        parameters = np.zeros(1, np.float32)
        self.state = SliceState(
            plan,
            part,
            make_rule(plan, part, 2),
            parameters,
            parameters,
            buffer_of=self.buffers.__getitem__,
            decode=codec_named("plain").decode,
        )
        self.state.expect([0, 1])
        for rank in range(2):
            self.state.receive(Message(Kind.JOIN, rank, 1, body={"parts": 1}))
            self.buffers[rank] = np.zeros(1, np.float32)

    def push(self, rank, round_):
        """The staleness that each rank is answered with that is answered now."""
        message = Message(Kind.PUSH, rank, 1, round_, body={"rows": 1, "denominators": [1.0]}, payload=ONE)
        replies = [each for each in self.state.receive(message) if isinstance(each, Reply)]
        return {each.rank: RoundResult.of(each.message.body).staleness for each in replies}


def test_it_is_what_others_have_contributed_since_the_last_answer():
    added = Added("asynchronous")
    assert [added.push(1, 0), added.push(1, 1)] == [{1: 0}, {1: 0}]
    assert added.push(0, 0) == {0: 2}
    assert added.push(0, 1) == {0: 0}
    assert added.push(1, 2) == {1: 2}


def test_one_that_is_asked_for_again_is_the_same():
    added = Added("asynchronous")
    added.push(1, 0)
    assert added.push(0, 0) == {0: 1}
    assert added.push(0, 0) == {0: 1}


def test_who_has_to_wait_is_answered_with_it_later():
    added = Added("bounded(0)")
    assert added.push(0, 0) == {}
    assert added.push(1, 0) == {0: 0, 1: 1}


@pytest.mark.parametrize("body", [{}, {"staleness": 3}])
def test_none_is_left_out_of_the_message(body):
    assert RoundResult.of(body).body() == body
