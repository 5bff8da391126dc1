"""A slice whose rounds need the norm over all slices: between its own part and the whole, anything may happen."""

import numpy as np
import pytest

from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.sharding import Slice
from keraunos.exchange.slice_state import Reply, SliceState
from keraunos.exchange.wire import Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout


class Clipped:
    """One of several slices of two ranks, whose rounds need the norm over all slices."""

    def __init__(self):
        plan = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=1.0, global_clipnorm=1.0)")
        part = Slice(Layout(("w",), ((2,),), trainable=1), 0, 2)
        self.buffers = {}
        self.parameters = np.zeros(2, np.float32)
        self.state = SliceState(
            plan,
            part,
            make_rule(plan, part, 2),
            self.parameters,
            self.parameters,
            buffer_of=self.buffers.__getitem__,
            decode=codec_named("plain").decode,
            alone=False,
        )
        self.state.expect([0, 1])
        for rank in range(2):
            self.join(rank, 1)

    def join(self, rank, incarnation):
        actions = self.state.receive(Message(Kind.JOIN, rank, incarnation, body={"parts": 1}))
        self.buffers[rank] = np.full(2, np.nan, np.float32)
        return [each.message.round for each in actions if isinstance(each, Reply)]

    def push(self, rank, values, incarnation=1):
        body = {"denominators": [1.0], "rows": 1}
        payload = memoryview(np.array(values, np.float32))
        return self.state.receive(Message(Kind.PUSH, rank, incarnation, 0, 0, body, payload))


def test_a_round_that_needs_the_norm_of_all_slices_closes_when_it_is_known():
    clipped = Clipped()
    assert clipped.push(0, [3, 0]) == []
    # The mean of both gradients is (3, 4), of norm 5 in this slice.
    (asked,) = clipped.push(1, [3, 8])
    assert (asked.round, asked.value) == (0, pytest.approx(25))
    assert clipped.push(1, [1e6, 1e6]) == []
    assert clipped.state.total_norm(1, 1.0) == []
    answers = clipped.state.total_norm(0, 100.0)
    assert [(each.message.rank, each.message.round) for each in answers] == [(0, 0), (1, 0)]
    np.testing.assert_allclose(clipped.parameters, [-0.3, -0.4], rtol=1e-5)
    assert clipped.state.total_norm(0, 100.0) == []


def test_one_that_comes_back_while_a_round_closes_is_answered_with_it():
    clipped = Clipped()
    clipped.push(0, [3, 0])
    clipped.push(1, [3, 8])
    assert clipped.join(1, 2) == [0]
    assert clipped.push(1, [1e6, 1e6], incarnation=2) == []
    answers = clipped.state.total_norm(0, 100.0)
    assert [(each.message.rank, each.message.incarnation) for each in answers] == [(0, 1), (1, 2)]
    np.testing.assert_allclose(clipped.parameters, [-0.3, -0.4], rtol=1e-5)


def test_one_that_leaves_while_a_round_closes_keeps_its_part_in_it():
    clipped = Clipped()
    clipped.push(0, [3, 0])
    clipped.push(1, [3, 8])
    assert clipped.state.remove(1) == []
    (answer,) = clipped.state.total_norm(0, 100.0)
    assert answer.message.rank == 0
    np.testing.assert_allclose(clipped.parameters, [-0.3, -0.4], rtol=1e-5)
