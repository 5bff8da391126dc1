"""A server that trains while it is attacked: it finishes, with the bits of the undisturbed run, and stays small."""

import gc
import os
import threading

import numpy as np
import pytest
import zmq

from keraunos.exchange.security import Credentials
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout
from tests.exchange import fuzz
from tests.exchange.footprint import Footprint
from tests.exchange.members import Job

LAYOUT = Layout(("w", "s"), ((1500,), (200,)), trainable=1)
ROUNDS = 200
MESSAGES = 100_000
TOO_LARGE = 100
STRANGERS = 1_000
INCARNATION = 2
MOST_GROWTH = 200 << 20


class Progress:
    """Lets training go on as far as the attack has come, so that neither ends before the other."""

    def __init__(self):
        self._condition = threading.Condition()
        self._done = 0.0
        self._rounds = [0, 0]
        self.ended = False

    def attack(self, done):
        with self._condition:
            self._done = done
            self._condition.notify_all()

    def attack_ends(self):
        with self._condition:
            self.ended = True
            self._condition.notify_all()

    def train(self, rank, round_):
        with self._condition:
            self._rounds[rank] = round_
            self._condition.notify_all()
            self._condition.wait_for(lambda: self.ended or round_ <= 2 + self._done * ROUNDS, timeout=120)

    def wait_for_training(self):
        """Until every rank has taken part in a round, and so has joined everything."""
        with self._condition:
            assert self._condition.wait_for(lambda: min(self._rounds) >= 1, timeout=60)


def job(before_round=None):
    def contribute(rank, round_):
        if before_round is not None:
            before_round(rank, round_)
        return np.random.default_rng((rank, round_)).normal(size=LAYOUT.size).astype(np.float32), 1 + rank

    plan = ExchangePlan.named("averaging")
    return Job(
        plan,
        LAYOUT,
        np.zeros(LAYOUT.size, np.float32),
        contribute,
        rounds=ROUNDS,
        share_memory=False,
        incarnation=INCARNATION,
        host="127.0.0.1",
    )


class Attack:
    """All of it, in one thread, in bounded loops; what it counted is read when it is over."""

    def __init__(self, recorder, progress):
        self._recorder = recorder
        self._progress = progress
        self.sent = 0
        self.closed = 0
        self.turned_away = 0
        self.error = None

    def __call__(self, server):
        try:
            self._progress.wait_for_training()
            self._run(server.connection, server.state.slices[0].connection)
        except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
            self.error = error
        finally:
            self._progress.attack_ends()

    def _run(self, coordinator, slice_):
        key = Credentials(**coordinator["credentials"]).seal_key
        mutator = fuzz.Mutator(list(self._recorder.frames), key, INCARNATION)
        with (
            zmq.Context() as context,
            fuzz.Hostile(context, coordinator, INCARNATION) as first,
            fuzz.Hostile(context, slice_, INCARNATION) as second,
        ):
            for number in range(MESSAGES):
                (first, second)[number % 2].send(mutator.next())
                self.sent += 1
                if number % (MESSAGES // STRANGERS) == 0:
                    where = (coordinator, slice_)[number // (MESSAGES // STRANGERS) % 2]
                    self.turned_away += fuzz.knock(where["address"], number // (2 * MESSAGES // STRANGERS))
                if number % (MESSAGES // TOO_LARGE) == 0:
                    self.closed += fuzz.send_too_large(context, (coordinator, slice_)[number // 1000 % 2])
                self._progress.attack(number / MESSAGES)
            for hostile in (first, second):
                assert hostile.all_taken()
                self.sent += 1


def resident():
    """The process's resident memory, in bytes."""
    gc.collect()
    return Footprint.of(os.getpid()).resident


@pytest.mark.slow
def test_an_attacked_training_ends_as_the_undisturbed_one_does(monkeypatch, capsys):
    undisturbed = job().run()
    assert undisturbed.dropped == 0
    progress = Progress()
    attack = Attack(fuzz.Recorder(monkeypatch), progress)
    before = resident()
    outcome = job(progress.train).run(while_training=attack)
    growth = resident() - before
    if attack.error is not None:
        raise attack.error
    with capsys.disabled():
        print(f"\n{attack.sent:,} messages, {outcome.dropped:,} dropped, resident memory {growth >> 20:+} MB")
    np.testing.assert_array_equal(outcome.parameters, undisturbed.parameters)
    assert attack.sent >= MESSAGES
    assert outcome.dropped == attack.sent, "every one of them was counted"
    assert attack.turned_away == STRANGERS
    assert attack.closed == TOO_LARGE
    assert growth < MOST_GROWTH
