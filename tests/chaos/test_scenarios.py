"""What is drawn: the same for a seed, each kind in its turn, and nothing that cannot happen."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos import expectations, scenarios
from chaos.scenarios import DRIVER, KILLS, SERVER, STALL, WORKER, Fault, Scenario, draw

ALL = sorted(expectations.EXPECTED[1])


@given(seed=st.integers(0, 1000), count=st.integers(1, 30))
def test_a_seed_gives_the_same_runs_however_many_are_drawn(seed, count):
    assert draw(count, seed, ALL) == draw(count + 10, seed, ALL)[:count]


@given(seed=st.integers(0, 1000))
def test_every_plan_and_placement_has_its_turn(seed):
    drawn = draw(21, seed, ALL)
    assert len({(each.plan, each.servers) for each in drawn}) == 21


@given(seed=st.integers(0, 1000))
def test_only_what_can_happen_is_drawn(seed):
    for each in draw(40, seed, ALL):
        assert 1 <= len(each.faults) <= 2
        kinds = [fault.kind for fault in each.faults]
        assert SERVER not in kinds or each.servers == 1
        assert DRIVER not in kinds[:-1]
        for fault in each.faults:
            assert 0 <= fault.epoch <= scenarios.PLANS[each.plan]["epochs"] * 0.4
            assert (fault.seconds > 0) == (fault.kind not in KILLS)
            assert expectations.FINISHED in expectations.allowed(each)


def test_kinds_that_are_not_asked_for_do_not_come():
    kinds = Counter(fault.kind for each in draw(60, 1, [WORKER, STALL]) for fault in each.faults)
    assert set(kinds) == {WORKER, STALL}


@pytest.mark.parametrize("servers", list(expectations.EXPECTED))
def test_nothing_that_is_drawn_may_end_a_fit(servers):
    for kind in expectations.EXPECTED[servers]:
        faults = (Fault(kind, 0, 3, 0.0), Fault(kind, 1, 3, 0.0))
        scenario = Scenario(0, "allreduce", servers, shuffled=False, faults=faults)
        assert expectations.allowed(scenario) == expectations.SURVIVES
