"""What follows from where the parameters live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.job.exchange_plan import PRESETS, ExchangePlan
from keraunos.job.placement import FIRST_SERVER, placement_of
from keraunos.job.training_job import TrainingJob
from tests.job.test_exchange_plan import job

AMONG_WORKERS = "package.module:Transport"
PLACES = st.one_of(st.sampled_from(["driver", "workers", AMONG_WORKERS]), st.integers(1, 9))


@pytest.mark.parametrize(
    ("servers", "plan", "tasks", "slots"),
    [
        ("driver", "allreduce", 4, 4),
        ("driver", "downpour", 4, 1),
        ("workers", "downpour", 4, 4),
        (AMONG_WORKERS, "allreduce", 4, 4),
        (2, "bounded", 6, 6),
        (2, "downpour", 6, 3),
    ],
)
def test_how_many_tasks_there_are_and_how_many_slots_they_need_at_once(servers, plan, tasks, slots):
    placement = placement_of(servers)
    assert placement.tasks(4) == tasks
    assert placement.needed_slots(ExchangePlan.named(plan), 4) == slots


@pytest.mark.parametrize(("servers", "workers"), [("driver", 4), ("workers", 4), (1, 3), (4, 1), (7, 1)])
def test_servers_of_their_own_leave_fewer_slots_to_workers(servers, workers):
    assert placement_of(servers).workers_in(4) == workers


@pytest.mark.parametrize(
    ("servers", "hosts", "lost_with"),
    [
        ("driver", [], []),
        ("workers", [0, 2], [0, 1, 2]),
        (AMONG_WORKERS, [0, 2], [0, 1, 2]),
        (2, [FIRST_SERVER, FIRST_SERVER + 1], [FIRST_SERVER]),
    ],
)
def test_who_hosts_the_slices_and_whose_loss_takes_one_along(servers, hosts, lost_with):
    placement = placement_of(servers)
    assert placement.hosts({2, 0}) == hosts
    members = [rank for rank in (0, 1, 2, FIRST_SERVER) if placement.has_member(rank, 3)]
    assert [rank for rank in members if placement.holds_part(rank)] == lost_with


@given(PLACES, st.integers(1, 9), st.integers(-2, FIRST_SERVER + 12))
def test_whoever_hosts_a_slice_is_a_member(servers, workers, rank):
    placement = placement_of(servers)
    hosts = placement.hosts(range(workers))
    assert all(placement.has_member(host, workers) and placement.holds_part(host) for host in hosts)
    assert (not hosts) is placement.on_driver
    if placement.has_member(rank, workers):
        assert rank in range(workers) or rank in hosts


@given(PLACES, st.sampled_from(sorted(PRESETS)), st.integers(1, 20))
def test_all_tasks_that_must_run_at_once_have_a_slot(servers, plan, workers):
    placement = placement_of(servers)
    needed = placement.needed_slots(ExchangePlan.named(plan), workers)
    assert placement.server_tasks < needed <= placement.tasks(workers)


@pytest.mark.parametrize(
    ("servers", "ports", "shared"),
    [
        ("driver", (40000, 40000), True),
        ("driver", (40000, 40001), False),
        ("driver", None, False),
        ("workers", (40000, 40000), False),
        (1, (40000, 40000), False),
    ],
)
def test_a_slice_on_the_driver_is_behind_the_coordinators_port_where_no_other_may_be_used(servers, ports, shared):
    assert placement_of(servers).shares_port(ports) is shared


@given(PLACES)
def test_a_job_has_its_placement_wherever_it_arrives(servers):
    made = job(servers=servers)
    assert TrainingJob.from_bytes(made.to_bytes()).placement == made.placement == placement_of(servers)
