"""Server and clients over real sockets: equal results by every way, nothing lost, nothing left behind."""

import threading
from contextlib import ExitStack

import numpy as np
import pytest
import zmq

from keraunos.errors import ClusterError, ExchangeError
from keraunos.exchange import client as clients
from keraunos.exchange import link
from keraunos.exchange.client import Client, Stopped, Superseded
from keraunos.exchange.rules.add import Add
from keraunos.exchange.server import Server
from keraunos.exchange.silence import MOST_GAP_SECONDS, Silence
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import register_rule
from keraunos.parameters import Layout
from tests.exchange.members import FACTS, Job

LARGE = Layout(("w", "s"), ((600_000,), (70_000,)), trainable=1)
SMALL = Layout(("w",), ((1,),), trainable=1)
PLACES = ("driver", "driver, one port", "workers", 2)


def values_of(rank, round_, layout):
    return np.random.default_rng((rank, round_)).normal(size=layout.size).astype(np.float32)


def contributions(layout):
    """What rank 0 and rank 1 send; rank 0 has nothing for round 1."""

    def contribute(rank, round_):
        return None if (rank, round_) == (0, 1) else (values_of(rank, round_, layout), 2 + rank)

    return contribute


def run(plan, layout, **options):
    plan = ExchangePlan.named(plan) if isinstance(plan, str) else plan
    contribute = options.pop("contribute", None) or contributions(layout)
    if options.get("servers") == "driver, one port":
        port = free_port_pair()
        options |= {"servers": "driver", "ports": (port, port)}
    return Job(plan, layout, np.full(layout.size, 5, np.float32), contribute, **options).run()


def mean_of_round(round_, layout):
    sent = [(values_of(rank, round_, layout), 2 + rank) for rank in range(2) if (rank, round_) != (0, 1)]
    return np.average([each for each, _ in sent], axis=0, weights=[rows for _, rows in sent])


@pytest.mark.paired
@pytest.mark.parametrize("layout", [SMALL, LARGE], ids=["one parameter", "many chunks"])
@pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "socket"])
@pytest.mark.parametrize("servers", PLACES)
def test_every_worker_gets_the_mean_gradient(layout, share_memory, servers):
    outcome = run("allreduce", layout, servers=servers, share_memory=share_memory)
    assert outcome.dropped == 0
    for round_ in range(3):
        for rank in range(2):
            np.testing.assert_allclose(
                outcome.results[rank][round_], mean_of_round(round_, layout), rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("plan", ["averaging", "allreduce"])
def test_every_way_gives_the_same_bits(plan):
    ways = [run(plan, LARGE, servers=where, share_memory=shared) for where in PLACES for shared in (True, False)]
    for outcome in ways[1:]:
        for rank in range(2):
            for ours, theirs in zip(outcome.results[rank], ways[0].results[rank], strict=True):
                np.testing.assert_array_equal(ours, theirs)
        if plan == "averaging":
            np.testing.assert_array_equal(outcome.parameters, ways[0].parameters)


@pytest.mark.parametrize(
    ("plan", "servers", "looks"),
    [("allreduce", "workers", True), ("downpour", "workers", False), ("downpour", "driver", True)],
)
def test_who_has_a_thread_that_serves_sleeps_while_it_waits(monkeypatch, plan, servers, looks):
    waits = []
    wait_until = Client.wait_until

    def noted(client, condition, what, again=None):
        if what == "a round's result":
            waits.append(client.spins)
        return wait_until(client, condition, what, again)

    monkeypatch.setattr(Client, "wait_until", noted)
    run(plan, LARGE, servers=servers, share_memory=False)
    assert set(waits) == {looks}


@pytest.mark.paired
@pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "socket"])
@pytest.mark.parametrize("servers", PLACES)
def test_updates_without_waiting_are_each_applied_once(share_memory, servers):
    outcome = run(
        "downpour",
        LARGE,
        workers=3,
        servers=servers,
        share_memory=share_memory,
        contribute=lambda rank, round_: (values_of(rank, round_, LARGE), 1 + round_),
    )
    total = sum(values_of(rank, round_, LARGE) for rank in range(3) for round_ in range(3))
    assert outcome.dropped == 0
    weights = LARGE.sizes[0]
    moved = total / 3
    moved[:weights] *= ExchangePlan.named("downpour").stretch(3)  # State is a mean, which is not stretched.
    np.testing.assert_allclose(outcome.parameters, 5 - moved, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("servers", PLACES)
def test_a_clip_by_the_norm_of_the_whole_is_the_same_over_any_slices(servers):
    plan = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=1.0, global_clipnorm=1.0)")
    layout = Layout(("a", "b"), ((50,), (30,)), trainable=2)
    outcome = run(plan, layout, servers=servers, rounds=1)
    gradient = mean_of_round(0, layout)
    np.testing.assert_allclose(outcome.parameters, 5 - gradient / np.linalg.norm(gradient), rtol=1e-5)


def test_the_learned_parameters_are_given_to_whoever_joins_later():
    plan = ExchangePlan.named("downpour")
    job = Job(plan, SMALL, np.zeros(1, np.float32), lambda rank, round_: (np.full(1, -2, np.float32), 1), rounds=1)
    outcome = job.run()
    each = 2 / 2 * plan.stretch(2)
    np.testing.assert_allclose(outcome.parameters, [2 * each])
    for results in outcome.results.values():
        assert [float(result[0]) for result in results] in ([pytest.approx(each)], [pytest.approx(2 * each)])


def test_stop_reaches_a_worker_that_waits():
    with (
        Server(ExchangePlan.named("allreduce"), 2, SMALL, np.zeros(1, np.float32)) as server,
        Client(server.connection, 0, 1) as client,
    ):
        client.hello({})
        threading.Thread(target=lambda: server.events.get() and server.stop("enough")).start()
        with pytest.raises(Stopped, match="enough"):
            client.ready(FACTS)


def held(server):
    """The coordinator stands still, as a paused driver does, until the event is set."""
    standing, go_on = threading.Event(), threading.Event()

    def wait():
        standing.set()
        go_on.wait()
        return []

    server._command(wait)
    standing.wait()
    return go_on


@pytest.fixture
def light_sleep(monkeypatch):
    """A client that waits looks at its clock ten times a second, and its last words are not waited for."""
    monkeypatch.setattr(clients, "_SLEEP_MS", 100)
    monkeypatch.setattr(link, "_LINGER_MS", 100)


@pytest.mark.usefixtures("light_sleep")
@pytest.mark.parametrize("host", [None, "127.0.0.1"])
def test_a_driver_that_stands_still_is_waited_for_as_long_as_the_patience_lasts(host):
    clock = Clock()
    with (
        Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32), host=host) as server,
        Client(server.connection, 0, 1, clock=clock) as client,
    ):
        client.hello({})
        client.patience, later = 60.0, clock.now + 8
        go_on = held(server)
        clock.on_read = lambda: clock.now > later and go_on.set()
        assert client.hello({}), "the driver went on in time"
        client.patience, clock.on_read = 7.0, None
        go_on = held(server)
        with pytest.raises(ExchangeError, match=r"Nothing was heard from the driver .* for \d+ s .*driverPatience"):
            client.hello({})
        go_on.set()


def test_a_worker_that_stood_still_itself_counts_none_of_it():
    silence = Silence(0.0)
    assert not silence.grow(1.0)
    assert not silence.grow(10_000.0)
    assert silence.seconds == 1.0 + MOST_GAP_SECONDS
    silence.end()
    assert silence.seconds == 0.0


@pytest.mark.usefixtures("light_sleep")
@pytest.mark.parametrize("host", [None, "127.0.0.1"])
def test_a_driver_that_has_ended_is_noticed_long_before_the_patience_ends(host):
    with ExitStack() as stack:
        server = stack.enter_context(
            Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32), host=host)
        )
        clock = Clock()
        client = stack.enter_context(Client(server.connection, 0, 1, clock=clock))
        client.hello({})
        server.__exit__(None, None, None)
        with pytest.raises(ExchangeError, match="has ended: connections to it are refused"):
            client.hello({})
        assert clock.now < 20


class Clock:
    """A second passes whenever somebody looks at it."""

    def __init__(self):
        self.now = 0.0
        self.on_read = None

    def __call__(self):
        self.now += 1.0
        if self.on_read is not None:
            self.on_read()
        return self.now


def test_a_server_on_this_machine_that_has_ended_is_noticed_at_once():
    with Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32)) as server:
        connection = server.connection
    with pytest.raises(ExchangeError, match="is not there: No such file or directory. The driver has ended"):
        Client(connection, 0, 1).__enter__()


def test_a_newer_incarnation_takes_the_rank_and_the_older_one_ends():
    with (
        Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32)) as server,
        Client(server.connection, 0, 1) as older,
        Client(server.connection, 0, 2) as newer,
    ):
        older.hello({})
        newer.hello({})
        with pytest.raises(Superseded):
            older.ready(FACTS)
        newer.hello({})


def test_something_is_fetched_whole_whatever_its_size():
    job = np.random.default_rng(0).bytes(9 * (1 << 20) + 17)
    with (
        Server(ExchangePlan.named("allreduce"), 1, SMALL, np.zeros(1, np.float32), job=job) as server,
        Client(server.connection, 0, 1) as client,
    ):
        sizes = client.hello({})
        assert bytes(client.fetch("job", 0, sizes["job"])) == job


def test_ports_are_taken_from_the_range_and_given_back():
    low = free_port_pair()
    plan = ExchangePlan.named("averaging")
    for _ in range(2):
        with Server(plan, 1, SMALL, np.zeros(1, np.float32), ports=(low, low + 1)) as server:
            ports = {int(server.connection["address"].rpartition(":")[2])}
            ports |= {int(each.address.rpartition(":")[2]) for each in server.state.slices}
            assert ports == {low, low + 1}


@pytest.mark.parametrize("plan", ["averaging", "downpour", "hogwild"])
def test_one_port_is_enough_for_the_driver(plan):
    port = free_port_pair()
    with Server(ExchangePlan.named(plan), 3, SMALL, np.zeros(1, np.float32), ports=(port, port)) as server:
        addresses = {server.connection["address"], *(each.address for each in server.state.alternatives)}
    assert addresses == {f"tcp://127.0.0.1:{port}"}


def test_hogwild_takes_no_more_ports_than_there_are():
    low = free_port_pair()
    with Server(ExchangePlan.named("hogwild"), 9, SMALL, np.zeros(1, np.float32), ports=(low, low + 1)) as server:
        addresses = {server.connection["address"], *(each.address for each in server.state.alternatives)}
    assert addresses == {f"tcp://127.0.0.1:{low}", f"tcp://127.0.0.1:{low + 1}"}


class Failing(Add):
    """A rule of a user's that does not work."""

    def apply(self, *_, **__):
        raise RuntimeError("no such thing")


def test_what_ends_a_rule_behind_one_port_is_told():
    register_rule("failing", "tests.exchange.test_server:Failing")
    plan = ExchangePlan("updates", 1, "asynchronous", "failing")
    with pytest.raises(ExchangeError, match=r"The rule failed: RuntimeError: no such thing"):
        run(plan, SMALL, servers="driver, one port", contribute=lambda *_: (np.ones(1, np.float32), 1))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (0, r"Port {low} on 127.0.0.1 is in use, and `serverPorts` allows no other"),
        (1, r"No port from {low} to {high} is free on 127.0.0.1.*`serverPorts`"),
    ],
)
def test_ports_that_are_in_use_are_an_error_that_names_them(more, message):
    low = free_port_pair()
    plan, zeros = ExchangePlan.named("averaging"), np.zeros(1, np.float32)
    with Server(plan, 1, SMALL, zeros, ports=(low, low + more)):
        expected = message.format(low=low, high=low + more)
        with pytest.raises(ClusterError, match=expected), Server(plan, 1, SMALL, zeros, ports=(low, low + more)):
            pass


def free_port_pair():
    """The first of two neighbouring ports that nothing listens on."""
    with zmq.Context() as context:
        for low in range(47_000, 48_000, 2):
            with context.socket(zmq.ROUTER) as first, context.socket(zmq.ROUTER) as second:
                first.linger = second.linger = 0
                try:
                    first.bind(f"tcp://127.0.0.1:{low}")
                    second.bind(f"tcp://127.0.0.1:{low + 1}")
                except zmq.ZMQError:
                    continue
                return low
    raise AssertionError("no free ports")


@pytest.mark.parametrize("meet", ["hogwild", "asynchronous", "bounded(2)"])
def test_what_is_saved_while_others_contribute_has_each_contribution_once(meet):
    plan = ExchangePlan("updates", 1, meet, "add", scale=1)
    ones = np.ones(LARGE.size, np.float32)
    kept = []

    def save(server):
        server._saved = lambda _, each: kept.append(each)
        pause = threading.Event()
        while len(kept) < 25:
            server.save_slices()
            pause.wait(0.01)

    rows = {rank: 2 + rank for rank in range(4)}
    job = Job(plan, LARGE, 0 * ones, lambda rank, _: (ones, rows[rank]), workers=4, rounds=80, keep_results=False)
    job.run(while_training=save)
    assert len({str(each.rounds) for each in kept}) > 5
    for each in kept:
        assert each.contributed == {rank: rows[rank] * round_ for rank, round_ in each.rounds.items() if round_}
        assert each.applied == sum(each.rounds.values())
        if meet != "hogwild":
            assert {-each.applied} == set(each.arrays[0])
