"""What is found wrong with the cluster's addresses and ports before a task runs."""

import socket

import pytest

from keraunos.errors import ClusterError
from keraunos.launch import preflight
from keraunos.launch import spark as launch
from keraunos.session.registry import session_of
from tests.conformance import engine
from tests.launch.test_rdd import records
from tests.launch.test_spark import frame, job, models

pytestmark = pytest.mark.spark


@pytest.fixture
def busy_port():
    """A port on loopback that something listens on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def job_on(port, **options):
    return engine.job_of(models.dense("adam"), 2, batch_size=16, exchange="downpour", ports=(port, port), **options)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("kind", [frame, records], ids=["dataframe", "rdd"])
def test_a_fit_needs_one_port_and_listens_on_the_host_it_is_given(spark, kind):
    result = launch.fit(job_on(free_port()), kind(spark), host="localhost", verbose=0)
    assert len(result.history["loss"]) == 1


def test_a_port_in_use_is_an_error_before_any_spark_job(spark, jobs_run, busy_port):
    with pytest.raises(ClusterError, match=rf"Port {busy_port} on 127.0.0.1 is in use, and `serverPorts`"):
        launch.fit(job_on(busy_port), records(spark), verbose=0)
    assert list(jobs_run()) == []


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("203.0.113.7", r"`host` must be.*of the driver's machine. Received: '203.0.113.7'.*which is 127.0.0.1"),
        ("no.such.host.invalid", r"`host` must be.*Received: 'no.such.host.invalid'"),
        ("0.0.0.0", r"`host` must be one address.*Received: '0.0.0.0', which stands for all"),
    ],
)
def test_a_host_that_is_not_this_machine_is_refused(spark, host, message):
    with pytest.raises(ClusterError, match=message):
        preflight.survey(session_of(spark), job(), host)


@pytest.mark.parametrize(
    ("master", "host", "bind", "expected"),
    [
        ("local[2]", "127.0.0.1", "127.0.0.1", (None, None)),
        ("local-cluster[2,1,512]", "myhost", None, (None, None)),
        ("spark://master:7077", "localhost", None, ("127.0.0.1", "localhost")),
        ("k8s://api", "driver.pod.svc", "0.0.0.0", ("0.0.0.0", "driver.pod.svc")),
        ("yarn", "203.0.113.7", "127.0.0.1", ("127.0.0.1", "203.0.113.7")),
        ("spark://[::1]:7077", "[::1]", None, ("::1", "::1")),
        ("spark://[::1]:7077", "[2001:db8::7]", "[::]", ("::", "2001:db8::7")),
    ],
)
def test_servers_listen_where_the_driver_does_and_are_reached_where_it_is(master, host, bind, expected):
    assert preflight.listening(master, host, bind) == expected


def test_a_driver_that_binds_to_no_address_of_this_machine_is_refused():
    with pytest.raises(ClusterError, match=r"'203.0.113.7' is no address of this machine .*spark.driver.bindAddress"):
        preflight.listening("yarn", "203.0.113.7", None)
