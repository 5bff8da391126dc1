"""How many bytes each rank has moved, and how stale its contributions were, in the table and in events."""

import keras
import numpy as np
import pytest

from keraunos.launch import follow
from keraunos.worker import loop
from tests.conformance import engine
from tests.conformance.fit_events_suite import Recorder

FEATURES = 400
ROUNDS = 6


def rows():
    x = np.random.default_rng(0).normal(size=(2 * 8 * ROUNDS, FEATURES)).astype("float32")
    return engine.partitions(engine.table(x=x, y=x[:, :1]), [8 * ROUNDS] * 2)


def model():
    layers = [keras.layers.Dense(200, activation="tanh"), keras.layers.Dense(1)]
    made = keras.Sequential([keras.Input((FEATURES,)), *layers])
    made.compile("sgd", "mse")
    return made


def fitted(exchange, servers="driver", **options):
    job = engine.job_of(model(), 2, exchange=exchange, every=1, servers=servers, batch_size=8)
    return engine.fitted(job, rows(), **options)


@pytest.mark.parametrize("servers", ["driver", 2])
@pytest.mark.parametrize("exchange", ["allreduce", "downpour"])
def test_vectors_are_counted_where_they_go(exchange, servers):
    over_sockets, in_memory = (fitted(exchange, servers, share_memory=share) for share in (False, True))
    moved = ROUNDS * over_sockets.parameters.nbytes
    for rank in range(2):
        sent = over_sockets.ranks[rank]
        assert moved <= sent.bytes_sent < 1.1 * moved
        assert moved <= sent.bytes_received
        assert sent.bytes_shared == 0
        shared = in_memory.ranks[rank]
        assert shared.bytes_shared == 2 * moved
        assert shared.bytes_sent < 0.1 * moved
        # The model and the first parameters are fetched all the same.
        assert sent.bytes_received - shared.bytes_received == pytest.approx(moved, rel=0.1)


def test_workers_that_host_the_slices_move_those_of_the_others():
    moved = fitted("allreduce", "workers")
    # Half of the vector is the worker's own.
    expected = ROUNDS * moved.parameters.nbytes
    assert [each.bytes_shared for each in moved.ranks] == pytest.approx([expected] * 2, rel=0.01)


@pytest.mark.parametrize(("exchange", "stale"), [("allreduce", False), ("downpour", True), ("hogwild", False)])
def test_events_tell_it_while_workers_train(exchange, stale, monkeypatch):
    monkeypatch.setattr(follow, "_SHOW_SECONDS", 0.0)
    monkeypatch.setattr(loop, "REPORT_EVERY_SECONDS", 0.0)
    heard = Recorder()
    fitted(exchange, listeners=[heard], share_memory=False)
    ranks = heard.of("progress")[-1].ranks
    assert [each.rank for each in ranks] == [0, 1]
    for each in ranks:
        assert each.bytes_sent > 0
        assert each.bytes_received > 0
        assert each.bytes_shared == 0
        assert (each.staleness is not None) == stale
        assert not stale or 0 <= each.staleness <= ROUNDS
