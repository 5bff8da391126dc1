"""Only the job's own workers are heard, and what they may do to a server is limited."""

import logging
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.client import Client
from keraunos.exchange.link import Link
from keraunos.exchange.security import Credentials
from keraunos.exchange.server import Server
from keraunos.exchange.transports.slices import Slices
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import ON_DRIVER
from keraunos.parameters import Layout
from tests.exchange.members import FACTS, Holder, Job

LAYOUT = Layout(("w",), ((3,),), trainable=1)
ZEROS = np.zeros(3, np.float32)


NETWORK = {"host": "127.0.0.1"}


def averaging_server(workers=1, **options):
    return Server(ExchangePlan.named("averaging"), workers, LAYOUT, ZEROS, **options)


def key_of(connection):
    return Credentials(**connection["credentials"]).seal_key


def slice_address(server):
    return server.state.slices[0].connection


@contextmanager
def training(server):
    """Rank 0 of a job of one, joined and ready to push, without shared memory."""
    with Client(server.connection, 0, 1, share_memory=False) as client:
        client.hello({})
        server.start([0])
        with Slices(client, server.plan, ON_DRIVER, 1) as slices:
            slices.open(client.ready(FACTS, slices.address), Holder(LAYOUT, ZEROS), 1)
            slices.join(wants_parameters=False)
            yield client, slices


class Recorder:
    """A relay on a port that notes what clients send."""

    def __init__(self, listener):
        self.heard = b""
        self.address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        self._listener = listener
        self._target = None

    def pass_on_to(self, port):
        self._target = port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for one, other, noted in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pump, args=(one, other, noted), daemon=True).start()

    def _pump(self, one, other, noted):
        with one, other, suppress(OSError):
            while piece := one.recv(65536):
                if noted:
                    self.heard += piece
                other.sendall(piece)


@contextmanager
def recorder():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Recorder(listener)


@pytest.mark.parametrize("host", [None, "127.0.0.1", "127.0.0.2", "::1"])
@pytest.mark.parametrize("where", ["coordinator", "slice"])
def test_without_the_secret_nobody_is_heard(host, where):
    with averaging_server(host=host) as server, zmq.Context() as context:
        connection = server.connection if where == "coordinator" else slice_address(server)
        wrong = {**connection, "credentials": Credentials.fresh(encrypted=host is not None).for_client()}
        with Link(context, wrong, 0, 1) as stranger, context.socket(zmq.DEALER) as bare:
            stranger.socket.linger = bare.linger = 0
            # Once it is turned away, a socket has nowhere to send to, and would wait for ever.
            stranger.socket.sndtimeo = bare.sndtimeo = 200
            bare.ipv6 = host == "::1"
            bare.connect(connection["address"])
            for kind in (Kind.HELLO, Kind.JOIN):
                with suppress(ExchangeError):
                    stranger.send(kind, body={"host": "x", "parts": 1})
                # Even with the right seal, a connection to a port that did not show the job's key is none.
                key = b"wrong" if host is None else key_of(connection)
                with suppress(zmq.Again):
                    bare.send_multipart(Message(kind, 0, 1, body={"host": "x", "parts": 1}).encode(key))
            assert not stranger.socket.poll(300)
            assert not bare.poll(100)
        assert server.state.members == {}
        with Client(server.connection, 0, 1) as friend:
            friend.hello({})
        assert list(server.state.members) == [0]


@pytest.mark.parametrize("servers", ["driver", "workers", 2])
def test_on_a_network_the_job_trains_encrypted(servers):
    job = Job(
        ExchangePlan("updates", 1, "synchronous", "mean"),
        LAYOUT,
        ZEROS,
        lambda rank, round_: (np.full(3, rank + 1, np.float32), 1),
        servers=servers,
        share_memory=False,
        **NETWORK,
    )
    outcome = job.run()
    np.testing.assert_allclose(outcome.parameters, [-4.5] * 3)


@pytest.mark.parametrize("where", ["coordinator", "slice"])
def test_on_a_network_only_the_keys_owner_is_heard(where):
    with averaging_server(**NETWORK) as server, zmq.Context() as context:
        connection = server.connection if where == "coordinator" else slice_address(server)
        credentials = connection["credentials"]
        assert not credentials["server_secret"]
        public, secret = (key.decode() for key in zmq.curve_keypair())
        stranger = {**connection, "credentials": {**credentials, "client_public": public, "client_secret": secret}}
        with Link(context, stranger, 0, 1) as link:
            link.socket.linger = 0
            # The allow-list alone must keep it out: it knows how messages are sealed.
            link.send(Kind.HELLO, body={"host": "x"})
            assert not link.socket.poll(500)
        assert server.state.members == {}
        with Client(server.connection, 0, 1) as friend:
            friend.hello({})


@pytest.mark.parametrize("servers", ["driver", "workers", 2])
def test_on_one_machine_everything_is_in_a_private_folder_and_nothing_listens_on_a_port(servers):
    found = []

    def look(server):
        places = [server.connection, *(each.connection for each in server.state.slices)]
        found.extend(Path(each["address"].removeprefix("ipc://")) for each in places)
        (folder,) = {path.parent for path in found}
        assert folder.stat().st_mode & 0o777 == 0o700
        assert all(path.is_socket() for path in found)

    job = Job(
        ExchangePlan("updates", 1, "synchronous", "mean"),
        LAYOUT,
        ZEROS,
        lambda rank, round_: (np.full(3, rank + 1, np.float32), 1),
        servers=servers,
    )
    job.run(while_training=look)
    assert not found[0].parent.exists()


def test_a_worker_does_not_connect_in_a_folder_that_others_can_write_to():
    with averaging_server() as server, zmq.Context() as context:
        folder = Path(server.connection["address"].removeprefix("ipc://")).parent
        folder.chmod(0o777)
        link = Link(context, server.connection, 0, 1)
        with pytest.raises(ExchangeError, match=r"must belong to this user alone. Received: .* with mode 777"), link:
            pass


@pytest.mark.parametrize("mechanism", ["NULL", "PLAIN", "CURVE"])
def test_whoever_listens_in_the_place_of_a_dead_server_hears_nothing(mechanism):
    """A stranger that asks for no secret, for a password, or has keys of its own; a relay records what reaches it."""
    with averaging_server(**NETWORK) as server:
        credentials = server.connection["credentials"]
    with zmq.Context() as context, context.socket(zmq.ROUTER) as impostor, recorder() as record:
        impostor.linger = 0
        impostor.plain_server = mechanism == "PLAIN"
        if mechanism == "CURVE":
            impostor.curve_server = True
            _, impostor.curve_secretkey = zmq.curve_keypair()
        record.pass_on_to(impostor.bind_to_random_port("tcp://127.0.0.1"))
        with Link(context, {"address": record.address, "credentials": credentials}, 0, 1) as link:
            link.socket.linger = 0
            link.send(Kind.HELLO, body={"host": "unmistakable"})
            assert not impostor.poll(1000)
    assert record.heard.startswith(b"\xff")
    for secret in (credentials["secret"], credentials["client_secret"], "unmistakable"):
        assert secret.encode() not in record.heard


def test_secrets_are_fresh_and_do_not_show(caplog):
    caplog.set_level(logging.DEBUG)
    first, second = (Credentials.fresh(encrypted=False) for _ in range(2))
    assert first != second
    assert len(bytes.fromhex(first.secret)) == 32
    assert first.secret not in repr(first)
    with averaging_server() as server, Client(server.connection, 0, 1) as client:
        client.hello({})
        assert server.connection["credentials"]["secret"] not in caplog.text


def test_a_host_of_a_slice_never_needs_the_drivers_secret_key():
    job = Credentials.fresh(encrypted=True)
    slice_ = Credentials(**job.for_client()).for_slice()
    assert slice_.server_secret not in {"", job.server_secret}
    assert (slice_.client_public, slice_.seal_key) == (job.client_public, job.seal_key)


def test_a_replay_from_another_connection_is_dropped():
    with averaging_server() as server, Client(server.connection, 0, 1) as client, zmq.Context() as context:
        client.hello({})
        server.events.get(timeout=10)
        with Link(context, server.connection, 0, 1) as thief:
            thief.send(Kind.HELLO, body={"host": "elsewhere"})
            thief.send(Kind.BYE)
            assert not thief.socket.poll(300)
        client.hello({})
        assert server.dropped == 2
        assert not server.state.members[0].gone
        assert server.state.members[0].host != "elsewhere"


def test_a_contribution_from_another_connection_is_dropped():
    with averaging_server(workers=2) as server, zmq.Context() as context, training(server) as (_, slices):
        with Link(context, slice_address(server), 0, 1) as thief:
            thief.send(Kind.PUSH, 0, 0, {"denominators": [1.0], "rows": 1}, np.full(3, 1e6, np.float32))
            thief.send(Kind.LEAVE)
            assert not thief.socket.poll(300)
        slices.contribute(0, np.full(3, 2, np.float32), (1.0,), 1)
        np.testing.assert_array_equal(slices.collect(0), [-2] * 3)
        assert server.dropped == 2


def test_a_join_that_is_refused_takes_nobodys_place():
    with averaging_server() as server, zmq.Context() as context, training(server) as (client, slices):
        for connection, kind in ((slice_address(server), Kind.JOIN), (server.connection, Kind.HELLO)):
            with Link(context, connection, 0, 99) as thief:
                # Without the fields that such a message has.
                thief.send(kind)
                assert not thief.socket.poll(300)
        slices.contribute(0, np.full(3, 2, np.float32), (1.0,), 1)
        np.testing.assert_array_equal(slices.collect(0), [-2] * 3)
        client.hello({})
        assert server.dropped == 2


def test_ranks_that_the_job_does_not_have_are_not_members():
    plan = ExchangePlan.named("downpour")
    with Server(plan, 2, LAYOUT, ZEROS) as server, zmq.Context() as context:
        for connection, kind in ((slice_address(server), Kind.JOIN), (server.connection, Kind.HELLO)):
            with Link(context, connection, 1000, 1) as thief:
                thief.send(kind, body={"parts": 64, "mark": None, "host": "x"})
                assert not thief.socket.poll(300)
        assert server.dropped == 2


@pytest.mark.parametrize(
    "frames",
    [
        [b""],
        [b"x" * 49, b"{}"],
        [b"", b"", b"", b""],
        [b""] * 10_000,
        [b"x" * CHUNK_BYTES] * 40,
        [b"x" * (CHUNK_BYTES + MAX_BODY_BYTES + 1)],
        [b"", b"y" * (CHUNK_BYTES + MAX_BODY_BYTES + 1), b""],
    ],
    ids=["empty", "no header", "four frames", "ten thousand frames", "40 MB", "too large", "a body too large"],
)
@pytest.mark.parametrize("where", ["coordinator", "slice"])
def test_what_is_no_message_does_not_end_the_server(frames, where):
    with averaging_server(workers=1) as server, zmq.Context() as context, training(server) as (client, slices):
        connection = server.connection if where == "coordinator" else slice_address(server)
        with Link(context, connection, 0, 1) as hostile:
            hostile.socket.linger = 0
            hostile.socket.send_multipart(frames)
            # The last word that arrives over this connection, where the server has not closed it.
            hostile.send(Kind.LEAVE)
            hostile.socket.poll(200)
        slices.contribute(0, np.full(3, 2, np.float32), (1.0,), 1)
        np.testing.assert_array_equal(slices.collect(0), [-2] * 3)
        client.hello({})
