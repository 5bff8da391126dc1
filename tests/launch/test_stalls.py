"""What the driver says of workers that are slow or stuck, and what it tells of all of them after a fit."""

import logging
import threading
from dataclasses import replace

import numpy as np
import pytest

from keraunos.exchange.server import Server
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.roll_call import RollCall
from keraunos.parameters import Layout
from tests.conformance import engine
from tests.conformance import learner_models as models

ROWS = 240
WAIT_SECONDS = 60


def _job(**schedule):
    return engine.job_of(models.dense("sgd"), 2, batch_size=10, **schedule)


def _partitions():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, models.FEATURES)).astype(np.float32)
    y = generator.integers(0, 3, size=ROWS)
    return engine.partitions(engine.table(x=x, y=y), [ROWS // 2, ROWS // 2])


class HeldBack:
    """A partition whose first row comes when somebody says so."""

    def __init__(self, part, leave):
        self._part, self._leave = part, leave

    def to_batches(self):
        self.held_back_here()
        yield from self._part.to_batches()

    def held_back_here(self):
        assert self._leave.wait(WAIT_SECONDS)


class LetsGo(logging.Handler):
    """Keeps what the driver says, and lets the one that is held back go when certain words are said."""

    def __init__(self, words, leave):
        super().__init__(logging.WARNING)
        self._words, self._leave, self.said = words, leave, []

    def emit(self, record):
        self.said.append(record.getMessage())
        if self._words in self.said[-1]:
            self._leave.set()


@pytest.fixture
def driver():
    """What the driver says."""
    handler = LetsGo("Where the workers are", threading.Event())
    logging.getLogger("keraunos").addHandler(handler)
    yield handler
    logging.getLogger("keraunos").removeHandler(handler)


def test_a_stall_is_told_with_the_stacks_of_all_workers_and_the_fit_goes_on(driver):
    first, second = _partitions()
    job = replace(_job(epochs=1), stall_report_after=5.0)
    result = engine.fitted(job, [first, HeldBack(second, driver._leave)])
    (stall,) = [each for each in driver.said if "Nothing has moved for" in each]
    assert "Worker 0 on" in stall
    assert "waiting for START" in stall
    (stacks,) = [each for each in driver.said if "Where the workers are" in each]
    assert "held_back_here" in stacks
    assert "does not answer" not in stacks
    assert len(result.history["loss"]) == 1


@pytest.mark.parametrize(("exchange", "every"), [("allreduce", 1), ("averaging", 5), ("downpour", 5)])
def test_a_fit_tells_what_each_rank_did(exchange, every):
    plan = ExchangePlan.named(exchange, every=every)
    result = engine.fitted(engine.job_of(models.dense("sgd"), 2, exchange=plan, batch_size=10, epochs=3), _partitions())
    assert [(each.rank, each.rows, each.returns) for each in result.ranks] == [(0, 360, 0), (1, 360, 0)]
    # 12 steps per epoch; those of the first round, which compiles, are counted too.
    assert [each.steps for each in result.ranks] == [36, 36]
    assert all(each.seconds_per_step > 0 and 0 <= each.waiting <= 1 for each in result.ranks)
    assert len(str(result.ranks).splitlines()) == 3
    assert result.lost_rows == ()


def test_a_slow_worker_is_named_once(driver):
    layout = Layout(("w",), ((3,),), trainable=1)
    job = _job()
    with FitEvents(job) as events, Server(job.exchange, 2, layout, np.zeros(3, np.float32)) as server:
        roll = RollCall(job, server, events, clock=lambda: 0.0)
        for rank, host in ((0, "fast"), (1, "slow")):
            server.state.receive(Message(Kind.HELLO, rank, 1, body={"host": host}))
        for steps in (10, 100, 200):
            for rank, seconds in ((0, 0.1), (1, 0.4)):
                tally = Tally(steps=steps, timed=steps, busy=seconds * steps, waited=5.0)
                server.state.receive(Message(Kind.PULSE, rank, 1, body=tally.to_json()))
            roll.look([0, 1], lambda rank: True, lambda rank: None)
    (said,) = driver.said
    assert said.startswith(
        "Worker 1 on slow is slow: 0.4 s per step, where the median is 0.1 s; the others have waited"
    )
    assert "about 30 s so far" in said
