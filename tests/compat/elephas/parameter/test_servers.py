"""Parameter servers that programs run themselves: every update once, nobody without the key."""

import pickle
import socket
import threading
from multiprocessing import AuthenticationError

import numpy as np
import pytest

from keraunos.compat.elephas.parameter import (
    BaseParameterClient,
    ClientServerFactory,
    HttpClient,
    HttpServer,
    SocketClient,
    SocketServer,
)
from keraunos.compat.elephas.utils.serialization import model_to_dict
from keraunos.errors import ClusterError, DataError, JobError
from tests.compat.elephas import models


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.mark.parametrize("kind", ["http", "socket"])
@pytest.mark.parametrize("form", [lambda model: model, model_to_dict], ids=["model", "dict"])
def test_weights_are_given_and_changed(port, kind, form):
    model = models.classifier()
    factory = ClientServerFactory.get_factory(kind)
    with factory.create_server(form(model), port, "asynchronous") as server:
        with factory.create_client(port) as client:
            for ours, theirs in zip(client.get_parameters(), model.get_weights(), strict=True):
                np.testing.assert_array_equal(ours, theirs)
            client.update_parameters(model.get_weights())
            assert not any(each.any() for each in client.get_parameters())
        assert not any(each.any() for each in server.get_parameters())


def test_updates_of_many_clients_are_each_applied_once(port):
    model = models.classifier()
    with HttpServer(model, port) as server:
        ones = [np.ones_like(each) for each in server.get_parameters()]
        before = np.concatenate([each.ravel() for each in server.get_parameters()])

        def push(client):
            with client:
                for _ in range(50):
                    client.update_parameters(ones)

        threads = [threading.Thread(target=push, args=(HttpClient(port),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        after = np.concatenate([each.ravel() for each in server.get_parameters()])
    np.testing.assert_allclose(before - after, 200, rtol=1e-5)


@pytest.mark.spark
def test_a_client_travels_to_workers(spark, port):
    with SocketServer(models.classifier(), port, "hogwild"):
        client = SocketClient(port)
        size = len(client.get_parameters())
        client.close()

        def ask(_):
            return [len(client.get_parameters())]

        assert spark.sparkContext.parallelize([0], 1).mapPartitions(ask).collect() == [size]


def test_a_stranger_hears_nothing(port):
    with HttpServer(models.classifier(), port):
        stranger = HttpClient(port)
        stranger._key = b"guessed"
        with pytest.raises((AuthenticationError, EOFError, OSError)):
            stranger.get_parameters()
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(pickle.dumps("anything"))
        with HttpClient(port) as friend:
            assert len(friend.get_parameters())


def test_an_update_of_another_shape_changes_nothing(port):
    with HttpServer(models.classifier(), port) as server, HttpClient(port) as client:
        before = client.get_parameters()
        with pytest.raises(DataError, match=r"of shapes \(\(64, 16\), .* Received: \(\(3,\),\)"):
            client.update_parameters([np.ones(3)])
        connection, _ = client._connected()
        connection.send_bytes(b"u")
        connection.send_bytes(bytes(12))  # what no client of ours would say
        with pytest.raises((EOFError, OSError)):
            connection.recv_bytes()
        for ours, theirs in zip(server.get_parameters(), before, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_mistakes_are_told(port):
    with pytest.raises(JobError, match="`parameter_server_mode` must be one of 'http', 'socket'"):
        ClientServerFactory.get_factory("ftp")
    with pytest.raises(JobError, match="`mode` must be one of 'asynchronous', 'hogwild'"):
        HttpServer(models.classifier(), port, "synchronous")
    with pytest.raises(ClusterError, match="a server that was started in this program"):
        BaseParameterClient.get_client("socket", port)
    with HttpServer(models.classifier(), port), pytest.raises(ClusterError, match=f"must be free. Received: {port}"):
        HttpServer(models.classifier(), port).start()
