"""A network that breaks and heals: nothing is lost and nothing is applied twice."""

import threading

import numpy as np
import pytest

from keraunos.exchange import client as clients
from keraunos.exchange import coordinator, letters, link
from keraunos.exchange.client import Client
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.server import Server
from keraunos.exchange.wire import Kind
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout
from tests.exchange.members import FACTS, Job
from tests.exchange.proxies import DOWN, UP, Proxies

LAYOUT = Layout(("w", "s"), ((1500,), (200,)), trainable=1)
ROUNDS = 6
WAIT_SECONDS = 60


@pytest.fixture
def proxies(monkeypatch):
    """All patience is short here, so that tests are; and workers of one host have no doorbells, which lose nothing."""
    monkeypatch.setattr(Doorbells, "create", lambda ranks: None)
    for module, name, value in (
        (clients, "ASK_AGAIN_SECONDS", 0.4),
        (clients, "_SLEEP_MS", 50),
        (letters, "AGAIN_SECONDS", 0.4),
        (coordinator, "ALIVE_EVERY_SECONDS", 0.1),
        (link, "_BEAT_MS", 100),
        (link, "_SILENT_MS", 400),
    ):
        monkeypatch.setattr(module, name, value)
    with pytest.MonkeyPatch.context() as patch, Proxies(patch) as found:
        yield found


def trained(plan, *, disturb=lambda rank, round_: None, **options):
    def contribute(rank, round_):
        disturb(rank, round_)
        return np.random.default_rng((rank, round_)).normal(size=LAYOUT.size).astype(np.float32), 1 + rank

    return Job(plan, LAYOUT, np.zeros(LAYOUT.size, np.float32), contribute, rounds=ROUNDS, **options).run()


@pytest.mark.paired
@pytest.mark.parametrize("share_memory", [False, True], ids=["chunks", "shared memory"])
@pytest.mark.parametrize("servers", ["driver", "workers", 1])
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_messages_that_are_lost_come_again(proxies, direction, servers, share_memory):
    plan = ExchangePlan.named("averaging")
    expected = trained(plan, servers=servers, share_memory=share_memory)

    def lose(rank, round_):
        if rank == 0 and round_ in {1, 3}:
            for proxy in proxies.each():
                proxy.lose(direction)

    outcome = trained(plan, servers=servers, share_memory=share_memory, disturb=lose)
    assert proxies.lost >= 2
    np.testing.assert_array_equal(outcome.parameters, expected.parameters)
    for rank, results in expected.results.items():
        np.testing.assert_array_equal(outcome.results[rank], results)


@pytest.mark.paired
@pytest.mark.parametrize("compression", [None, "int8"])
@pytest.mark.parametrize("meet", ["synchronous", "bounded(0)"])
def test_a_network_that_stands_still_and_heals_loses_nothing(proxies, meet, compression):
    plan = ExchangePlan("updates", 1, meet, "mean" if meet == "synchronous" else "add", compression=compression)
    healed = threading.Event()

    def hold(rank, round_):
        if rank == 0 and round_ == 2 and not healed.is_set():
            before = proxies.accepted
            for proxy in proxies.each():
                proxy.hold(True)
            threading.Thread(target=heal, args=(before,), daemon=True).start()

    def heal(before):
        # The worker has given the connections up, and made new ones.
        deadline = threading.Event()
        while proxies.accepted == before and not deadline.wait(0.02):
            pass
        healed.set()
        for proxy in proxies.each():
            proxy.hold(False)

    expected = trained(plan, share_memory=False)
    outcome = trained(plan, share_memory=False, disturb=hold)
    assert healed.is_set()
    if meet == "synchronous":
        np.testing.assert_array_equal(outcome.parameters, expected.parameters)
    else:
        np.testing.assert_allclose(outcome.parameters, expected.parameters, atol=0.2 if compression else 1e-5)


def test_every_report_arrives_once_and_in_order(proxies):
    plan = ExchangePlan.named("downpour")
    steps = 40
    with Server(plan, 1, LAYOUT, np.zeros(LAYOUT.size, np.float32)) as server:
        with Client(server.connection, 0, 1) as client:
            client.hello({})
            client.ready(FACTS)
            for step in range(steps):
                if step % 10 == 5:
                    proxies.of(server.connection["address"]).lose(UP)
                client.report_losses(step, np.array([[float(step), 1.0]]))
            client.bye()
        events = [server.events.get(timeout=WAIT_SECONDS) for _ in range(steps + 3)]
    assert proxies.lost
    assert [event.kind for event in events[:2]] == [Kind.HELLO, Kind.READY]
    assert [event.arrays[0][0, 0] for event in events[2:-1]] == list(range(steps))
    assert events[-1].kind is Kind.BYE


def test_what_the_driver_decided_arrives(proxies):
    with (
        Server(ExchangePlan.named("averaging"), 1, LAYOUT, np.zeros(LAYOUT.size, np.float32)) as server,
        Client(server.connection, 0, 1) as client,
    ):
        client.hello({})
        server.start([0])
        client.ready(FACTS)
        for lap in range(5):
            proxies.of(server.connection["address"]).lose(DOWN)
            server.go(lap, learning_rate=None, last=lap == 4)
            assert client.wait_for_go(lap).lap == lap
        client.bye()
    assert proxies.lost
