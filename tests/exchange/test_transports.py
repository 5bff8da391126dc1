"""Every transport keeps the promises of all, and which one a job has is refused where it does not fit."""

import pytest

from keraunos.errors import JobError, PlanError
from keraunos.exchange.transports.registry import check_transport, transport_class
from keraunos.exchange.transports.slices import Slices
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import placement_of
from keraunos.trust import trusting
from tests.conformance import socket_transport
from tests.conformance.transport_suite import TransportSuite


class TestSlicesOnTheDriver(TransportSuite):
    servers = "driver"


class TestSlicesOnWorkers(TransportSuite):
    servers = "workers"


class TestSlicesInTasks(TransportSuite):
    servers = 2


class TestSockets(TransportSuite):
    servers = socket_transport.HOME


@pytest.mark.parametrize("servers", ["driver", "workers", 2])
def test_slices_are_the_transport_of_our_own_servers(servers):
    assert transport_class(placement_of(servers)) is Slices
    for plan in ("allreduce", "averaging", "downpour", "hogwild", "bounded"):
        check_transport(placement_of(servers), ExchangePlan.named(plan, compression="int8"))


def test_a_transport_of_a_module_that_nobody_trusts_is_refused_and_not_imported():
    with pytest.raises(JobError, match=r"'Pipes' is of the module 'no.such', which is not trusted.*trust_modules"):
        check_transport(placement_of("no.such:Pipes"), ExchangePlan.named("allreduce"))


@pytest.mark.parametrize(
    ("home", "message"),
    [
        ("tests.no_such:Pipes", r"must be importable .* Expected: 'tests.no_such:Pipes'. Received: No module"),
        (f"{__name__}:Nothing", r"must be importable .* Expected: '.*:Nothing'"),
        (f"{__name__}:TransportSuite", r"must be a subclass of Transport. Expected at: .*Received: <class"),
    ],
)
def test_what_is_no_transport_is_refused(home, message):
    with trusting("tests"), pytest.raises(JobError, match=message):
        check_transport(placement_of(home), ExchangePlan.named("allreduce"))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (ExchangePlan.named("downpour"), r"SocketTransport needs meet='synchronous'. Received: meet='asynchronous'"),
        (ExchangePlan.named("averaging", compression="int8"), r"SocketTransport does not compress.*Received: 'int8'"),
    ],
)
def test_a_plan_that_a_transport_cannot_carry_out_is_refused(plan, message):
    with trusting("tests"), pytest.raises(PlanError, match=message):
        check_transport(placement_of(socket_transport.HOME), plan)
