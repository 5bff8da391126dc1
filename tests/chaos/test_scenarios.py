"""What is drawn: the same for a seed, each kind in its turn, and nothing that cannot happen."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos import expectations, scenarios
from chaos.scenarios import (
    COLLECT,
    DRIVER_PAUSED,
    END,
    INTERRUPT,
    JOB_PAUSED,
    KILLS,
    PAUSES,
    SERVER,
    STAGED,
    SYNCHRONOUS,
    WORKER,
    WORKER_PAUSED,
    Fault,
    Scenario,
    draw,
    stages_of,
)
from tests.clusters.fit_spec import CHECKPOINT, LAUNCH, LOAD, STAGES, TRAIN

ALL = sorted(expectations.EXPECTED[1])


@given(seed=st.integers(0, 1000), count=st.integers(1, 70))
def test_a_seed_gives_the_same_runs_however_many_are_drawn(seed, count):
    assert draw(count, seed, ALL) == draw(count + 10, seed, ALL)[:count]


@given(seed=st.integers(0, 1000))
def test_every_plan_and_placement_has_its_turn(seed):
    drawn = draw(60, seed, ALL)
    assert {(each.plan, each.servers) for each in drawn} == {
        (plan, servers) for plan in scenarios.PLANS for servers in scenarios.PLACEMENTS
    }


@given(seed=st.integers(0, 1000))
def test_an_hour_has_every_kind_at_every_stage(seed):
    drawn = [fault for each in draw(60, seed, ALL) for fault in each.faults]
    found = {(fault.kind, fault.stage, fault.beyond) for fault in drawn}
    assert found == {
        (kind, stage, beyond)
        for kind in ALL
        for stage in stages_of(kind)
        for beyond in ([False, True] if kind in PAUSES else [False])
    }


@given(seed=st.integers(0, 1000))
def test_a_few_runs_have_every_kind(seed):
    assert {fault.kind for each in draw(len(ALL), seed, ALL) for fault in each.faults} == set(ALL)


@given(seed=st.integers(0, 1000))
def test_only_what_can_happen_is_drawn(seed):
    for each in draw(60, seed, ALL):
        assert 1 <= len(each.faults) <= 3
        assert SERVER not in each.kinds or each.servers == 1
        stages = [STAGES.index(fault.stage) for fault in each.faults]
        assert stages == sorted(stages)
        for fault in each.faults:
            assert 0 <= fault.epoch <= scenarios.PLANS[each.plan]["epochs"] * 0.4
            assert (fault.seconds > 0) == (fault.kind not in {*KILLS, INTERRUPT})
            assert fault.stage in stages_of(fault.kind)
            if fault.kind == WORKER_PAUSED and fault.stage in {COLLECT, END}:
                assert each.servers == "workers" or each.plan in SYNCHRONOUS


@given(seed=st.integers(0, 1000))
def test_what_may_end_a_fit_comes_alone_and_with_little_patience(seed):
    for each in draw(60, seed, ALL):
        beyond = any(fault.beyond for fault in each.faults)
        assert each.params.get("workerPatience", 300.0) == (5.0 if beyond else 300.0)
        assert each.params.get("driverPatience", 300.0) == (5.0 if beyond else 300.0)
        if beyond or each.is_interrupted:
            assert len(each.faults) == 1
        else:
            assert expectations.allowed(each) == expectations.SURVIVES
        assert all(fault.seconds > 5 for fault in each.faults if fault.beyond)


def test_kinds_that_are_not_asked_for_do_not_come():
    kinds = Counter(fault.kind for each in draw(60, 1, [WORKER, JOB_PAUSED]) for fault in each.faults)
    assert set(kinds) == {WORKER, JOB_PAUSED}
    assert {each.kinds for each in draw(60, 1, STAGED)} == {frozenset({kind}) for kind in STAGED}


@pytest.mark.parametrize("servers", list(expectations.EXPECTED))
@pytest.mark.parametrize("kind", sorted(set(ALL) - {INTERRUPT, SERVER}))
def test_what_is_within_patience_ends_no_fit(servers, kind):
    faults = (Fault(kind, 0, 3, 0.0), Fault(kind, 1, 3, 0.0))
    scenario = Scenario(0, "allreduce", servers, shuffled=False, faults=faults)
    assert expectations.allowed(scenario) == expectations.SURVIVES


@pytest.mark.parametrize(
    ("kind", "stage", "plan", "servers", "allowed"),
    [
        (INTERRUPT, LAUNCH, "allreduce", "driver", {"interrupted"}),
        (WORKER_PAUSED, TRAIN, "allreduce", "driver", {"refused"}),
        (WORKER_PAUSED, LOAD, "diloco", 1, {"refused"}),
        (WORKER_PAUSED, TRAIN, "hogwild", "driver", {"finished", "refused"}),
        (WORKER_PAUSED, END, "allreduce", "driver", {"finished", "refused"}),
        (WORKER_PAUSED, TRAIN, "allreduce", "workers", {"finished"}),
        (DRIVER_PAUSED, CHECKPOINT, "allreduce", "driver", {"finished", "refused"}),
        (JOB_PAUSED, TRAIN, "allreduce", 1, {"finished"}),
    ],
)
def test_what_must_come_of_an_interrupt_and_of_a_pause_beyond_patience(kind, stage, plan, servers, allowed):
    fault = Fault(kind, 1, 0, 0.0, 8.0, stage, beyond=kind in PAUSES)
    assert expectations.allowed(Scenario(0, plan, servers, shuffled=False, faults=(fault,))) == allowed
