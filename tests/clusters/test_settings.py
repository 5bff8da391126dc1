"""Spark's settings for the driver's addresses and ports, on hosts with networks of their own."""

import socket
from dataclasses import replace

import numpy as np
import pytest

from tests.clusters import processes
from tests.clusters.drivers import ENDS, Driver
from tests.clusters.fit_spec import FitSpec
from tests.clusters.forwarder import forwarded, free_ports
from tests.clusters.hosts import CENTER_NAME, apart, can_make_networks, on_networks
from tests.clusters.standalone import StandaloneCluster
from tests.java import SHORT_LIVED

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE = 200.0
PARAMS = {"epochs": 1, "batchSize": 64}
LOCAL = {"spark.master": "local[4]"}
PLACES = {"driver": "driver", "workers": "workers", "task": 1}


def places(chosen):
    """All of them, of which `make test` takes the chosen one."""
    return [pytest.param(each, marks=[] if each == chosen else pytest.mark.extended) for each in PLACES]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two workers; Spark knows one by its IPv4 address, the other by its IPv6 address."""
    if not can_make_networks():
        pytest.skip("needs root and `ip`, for hosts with networks of their own")
    with on_networks(2, tmp_path_factory.mktemp("networks")) as made:
        first, second = made.workers
        yield replace(made, workers=(first, replace(second, address=f"[{second.address_6}]")))


@pytest.fixture(scope="module")
def cluster(hosts, tmp_path_factory):
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), hosts, cores=2) as started:
        yield started
    assert not processes.marked(started.mark)


@pytest.fixture(scope="module")
def alone(cluster):
    """A driver that is on this machine alone until it is asked for something else."""
    with Driver(cluster, settings=LOCAL) as started:
        yield started


@pytest.fixture(scope="module")
def expected(alone):
    """The weights of the same fit on this machine alone."""
    return np.load(ended(alone, "local", {})["parameters"])


@pytest.fixture
def fitted(cluster, alone):
    """Fits on the cluster, with some of Spark's settings and of the estimator's Params; gives how it ended."""

    def fit(name, settings, **options):
        return ended(alone, name, {"spark.master": cluster.master, **settings}, **options)

    return fit


def ended(driver, name, settings, slots=4, **params):
    driver.fit(FitSpec(name, shuffled=True, params={**PARAMS, **params}, slots=slots, settings=settings))
    return driver.wait_for(*ENDS, fit=name, patience=PATIENCE)


def assert_trained(event, expected):
    assert event["event"] == "finished", event
    np.testing.assert_allclose(np.load(event["parameters"]), expected, rtol=0, atol=1e-5)


def test_a_driver_behind_published_ports(cluster, hosts, expected):
    # The first of all: another driver's executors would hold every slot.
    center = hosts.center
    driver_port, blocks, servers = ports = free_ports(center, 3)
    settings = {
        "spark.driver.port": str(driver_port),
        "spark.driver.blockManager.port": str(blocks),
        "spark.task.maxFailures": "1",
    }
    with apart() as inside, forwarded(ports, center, inside.address):
        settings["spark.driver.bindAddress"] = inside.address
        with Driver(cluster, "apart", settings, inside.prefix) as driver:
            for name, place in PLACES.items():
                event = ended(driver, f"apart-{name}", {}, servers=place, serverPorts=(servers, servers))
                assert_trained(event, expected)
            same = ended(driver, "apart-same", {}, serverPorts=(driver_port, driver_port))
            assert (same["event"], same["error"]) == ("refused", "ClusterError"), same
            assert f"Port {driver_port} on {inside.address} is in use" in same["message"]
            (other,) = free_ports(center, 1)
            shut = ended(driver, "apart-shut", {}, serverPorts=(other, other))
            assert (shut["event"], shut["error"]) == ("refused", "WorkerError"), shut
            assert f"tcp://{center}:{other} could not be reached from" in shut["message"]
            assert "Connection refused" in shut["message"]
            assert driver.leave(30.0) == 0


@pytest.mark.extended  # the same addresses, with one port, are in the next test
@pytest.mark.parametrize("place", PLACES)
def test_a_driver_that_listens_everywhere(fitted, expected, place):
    event = fitted(f"everywhere-{place}", {"spark.driver.bindAddress": "0.0.0.0"}, servers=PLACES[place])
    assert_trained(event, expected)


@pytest.mark.parametrize("place", places("workers"))
def test_one_port_on_each_host_is_enough(fitted, hosts, expected, place):
    (port,) = free_ports(hosts.center, 1)
    settings = {"spark.driver.bindAddress": "0.0.0.0"}
    event = fitted(f"port-{place}", settings, servers=PLACES[place], serverPorts=(port, port))
    assert_trained(event, expected)


@pytest.mark.extended
def test_a_range_of_which_a_port_is_in_use(fitted, expected):
    with socket.create_server(("0.0.0.0", 0)) as busy:
        port = busy.getsockname()[1]
        event = fitted("range", {"spark.driver.bindAddress": "0.0.0.0"}, serverPorts=(port, port + 5))
    assert_trained(event, expected)


def test_a_range_that_is_used_up_is_refused_before_any_work(alone, fitted, expected):
    with socket.create_server(("0.0.0.0", 0)) as busy:
        port = busy.getsockname()[1]
        event = fitted("used-up", {"spark.driver.bindAddress": "0.0.0.0"}, serverPorts=(port, port))
    assert (event["event"], event["error"]) == ("refused", "ClusterError"), event
    assert f"Port {port} on 0.0.0.0 is in use" in event["message"]
    assert alone.told("ready", fit="used-up") == []


@pytest.mark.parametrize("place", places("task"))
def test_a_driver_that_listens_everywhere_by_ipv6_too(fitted, expected, place):
    event = fitted(f"any-{place}", {"spark.driver.bindAddress": "[::]"}, servers=PLACES[place])
    assert_trained(event, expected)


@pytest.mark.parametrize("place", places("workers"))
def test_a_driver_with_an_ipv6_address(fitted, hosts, expected, place):
    address = f"[{hosts.center_6}]"
    settings = {"spark.driver.bindAddress": address, "spark.driver.host": address}
    assert_trained(fitted(f"six-{place}", settings, servers=PLACES[place]), expected)


@pytest.mark.extended
def test_a_driver_that_listens_by_ipv6_under_a_name_for_both_kinds(fitted, hosts, expected):
    settings = {
        "spark.driver.bindAddress": f"[{hosts.center_6}]",
        "spark.driver.host": CENTER_NAME,
        "spark.executor.extraJavaOptions": f"{SHORT_LIVED} -Djava.net.preferIPv6Addresses=true",
    }
    assert_trained(fitted("name", settings), expected)


def test_a_driver_that_workers_cannot_reach_is_named(fitted, hosts, expected):
    event = fitted("loopback", {"spark.driver.bindAddress": "127.0.0.1"}, slots=0)
    assert (event["event"], event["error"]) == ("refused", "ClusterError"), event
    assert "spark.driver.bindAddress=127.0.0.1" in event["message"]
    assert f"spark.driver.host={hosts.center}" in event["message"]
