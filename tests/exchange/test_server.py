"""Server and clients over real sockets: equal results by every way, closed to strangers, nothing left behind."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange import client as client_module
from keraunos.exchange.client import Client, Stopped
from keraunos.exchange.security import Credentials
from keraunos.exchange.server import Server
from keraunos.exchange.wire import Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

SPEC = {"inputs": [[4], "float32"], "targets": None, "weighted": False}
FACTS = {"rows": 10, "validation_rows": 0, "spec": SPEC, "digest": ""}
LARGE = Layout(("w", "s"), ((600_000,), (70_000,)), trainable=1)
SMALL = Layout(("w",), ((1,),), trainable=1)


def contribution(rank, round_, layout):
    return np.random.default_rng((rank, round_)).normal(size=layout.size).astype(np.float32)


def work(server, rank, layout, rounds, share_memory, results):
    with Client(server.connection, rank, 1, share_memory=share_memory) as client:
        client.hello({"versions": {}})
        client.ready(layout, 1, FACTS)
        if not server.state.plan.synchronous:
            client.first_parameters()
        for round_ in range(rounds):
            if rank == 0 and round_ == 1 and server.state.plan.synchronous:
                result = client.pass_round(round_)
            else:
                result = client.exchange(round_, contribution(rank, round_, layout) * 2, [2.0], 2)
            results[rank].append(np.array(result))
        client.bye()


def train(plan, layout, rounds=3, workers=2, share_memory=True):
    initial = np.full(layout.size, 5, np.float32)
    results = {rank: [] for rank in range(workers)}
    with Server(ExchangePlan.named(plan), workers, layout, initial) as server, ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, server, rank, layout, rounds, share_memory, results) for rank in range(workers)]
        if server.state.plan.synchronous:
            for _ in range(2 * workers):
                server.events.get(timeout=10)
            server.start()
        for future in futures:
            future.result(timeout=60)
        return results, np.array(server.parameters), server.state.dropped


@pytest.mark.parametrize("layout", [SMALL, LARGE], ids=["one parameter", "many chunks"])
@pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "socket"])
def test_every_worker_gets_the_mean_gradient(layout, share_memory):
    results, _, dropped = train("allreduce", layout, share_memory=share_memory)
    assert dropped == 0
    for round_ in range(3):
        sent = [contribution(rank, round_, layout) for rank in range(2) if (rank, round_) != (0, 1)]
        for rank in range(2):
            np.testing.assert_allclose(results[rank][round_], np.mean(sent, axis=0), rtol=1e-5, atol=1e-6)


def test_shared_memory_and_socket_give_the_same_bits():
    shared, _, _ = train("averaging", LARGE, share_memory=True)
    sent, _, _ = train("averaging", LARGE, share_memory=False)
    for rank in range(2):
        for ours, theirs in zip(shared[rank], sent[rank], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "socket"])
def test_asynchronous_updates_are_each_applied_once(share_memory):
    _, parameters, dropped = train("downpour", LARGE, workers=3, share_memory=share_memory)
    total = sum(contribution(rank, round_, LARGE) for rank in range(3) for round_ in range(3))
    assert dropped == 0
    np.testing.assert_allclose(parameters, 5 - total / 3, rtol=1e-4, atol=1e-4)


def test_stop_reaches_a_worker_that_waits():
    with (
        Server(ExchangePlan.named("allreduce"), 2, SMALL, np.zeros(1, np.float32)) as server,
        Client(server.connection, 0, 1) as client,
    ):
        client.hello({"versions": {}})
        threading.Timer(0.1, server.stop, ["enough"]).start()
        with pytest.raises(Stopped, match="enough"):
            client.ready(SMALL, 1, FACTS)


def test_a_silent_server_is_noticed(monkeypatch):
    monkeypatch.setattr(client_module, "SERVER_SILENCE_SECONDS", 0.5)
    with Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32)) as server:
        connection = server.connection
    with Client(connection, 0, 1) as client, pytest.raises(ExchangeError, match="Nothing was heard"):
        client.hello({"versions": {}})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_without_the_secret_nobody_is_heard(host, monkeypatch):
    monkeypatch.setattr(client_module, "SERVER_SILENCE_SECONDS", 0.5)
    with Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32), host=host) as server:
        wrong = {**server.connection, "credentials": Credentials.fresh(host).for_client()}
        with Client(wrong, 0, 1) as stranger, pytest.raises(ExchangeError):
            stranger.hello({"versions": {}})
        with zmq.Context() as context, context.socket(zmq.DEALER) as bare:
            bare.linger = 0
            bare.connect(server.connection["address"])
            bare.send_multipart(Message(Kind.HELLO, 0, 1, body={"host": "x"}).encode())
            assert not bare.poll(300)
        assert server.state.members == {}
        with Client(server.connection, 0, 1) as friend:
            friend.hello({"versions": {}})
        assert list(server.state.members) == [0]


def test_a_network_address_gets_encryption_with_an_allow_list(monkeypatch):
    monkeypatch.setattr("keraunos.exchange.security.is_loopback", lambda host: False)
    monkeypatch.setattr(client_module, "SERVER_SILENCE_SECONDS", 0.5)
    results, _, _ = train("allreduce", LARGE, share_memory=False)
    assert len(results[0]) == len(results[1]) == 3
    with Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32)) as server:
        credentials = server.connection["credentials"]
        assert not credentials["password"]
        assert not credentials["server_secret"]
        public, secret = (key.decode() for key in zmq.curve_keypair())
        stranger = {**credentials, "client_public": public, "client_secret": secret}
        with Client({**server.connection, "credentials": stranger}, 0, 1) as client, pytest.raises(ExchangeError):
            client.hello({"versions": {}})


def test_secrets_are_fresh_and_do_not_show():
    first, second = Credentials.fresh("127.0.0.1"), Credentials.fresh("127.0.0.1")
    assert first != second
    assert len(bytes.fromhex(first.password)) == 32
    assert first.password not in repr(first)


def test_nonsense_does_not_end_the_server():
    with Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32)) as server:
        with Client(server.connection, 0, 1) as client:
            client.hello({"versions": {}})
            for frames in ([b""], [b"x" * 40, b"{}"], [b"", b"", b"", b""]):
                client._socket.send_multipart(frames)
            client._socket.send_multipart(Message(Kind.PUSH, 0, 1, 0, 0, {"denominators": "?"}, np.ones(9)).encode())
            client.hello({"versions": {}})
        assert server.state.dropped == 4
