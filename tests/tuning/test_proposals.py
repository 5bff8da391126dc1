"""Values that follow from what earlier trials came to."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.errors import JobError
from keraunos.tuning.proposals import Learned
from keraunos.tuning.space import LogUniform, Uniform, candidates

SPACE = {"rate": LogUniform(1e-5, 1.0), "momentum": Uniform(0.0, 1.0), "kind": ["bad", "good", "worse"]}


def loss(params):
    kinds = {"bad": 1.0, "good": 0.0, "worse": 2.0}
    return abs(math.log10(params["rate"]) + 2) + (params["momentum"] - 0.9) ** 2 + kinds[params["kind"]]


def minimized(trials, seed, at_once=1, order=None):
    """All proposals of a search whose trials end in portions of `at_once`, each in the order that is asked for."""
    proposals = Learned(SPACE, trials=trials, seed=seed)
    proposed, running = [], []
    while len(proposed) < trials or running:
        while len(proposed) < trials and len(running) < at_once and proposals.may_propose(len(proposed), at_once):
            running.append(len(proposed))
            proposed.append(proposals.propose(len(proposed), at_once))
        number = running.pop(order(len(running)) if order else 0)
        proposals.tell(number, loss(proposed[number]))
    return proposed


def test_it_learns_from_trials():
    learned = [min(map(loss, minimized(40, seed))) for seed in range(5)]
    drawn = [min(map(loss, candidates(SPACE, trials=40, seed=seed))) for seed in range(5)]
    assert statistics.median(learned) < 0.5 * statistics.median(drawn)
    later = minimized(40, 0)[20:]
    assert sum(each["kind"] == "good" for each in later) > 12


def test_it_says_nothing_of_its_own(caplog, capfd):
    minimized(2, 0)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_the_same_seed_is_the_same_search_and_another_is_not():
    assert minimized(15, 1) == minimized(15, 1)
    assert minimized(15, 1) != minimized(15, 2)


@given(st.lists(st.integers(0, 2), min_size=16, max_size=16))
def test_the_order_in_which_trials_end_makes_no_difference(picks):
    remaining = iter(picks)
    disordered = minimized(16, 3, at_once=3, order=lambda count: min(next(remaining), count - 1))
    assert disordered == minimized(16, 3, at_once=3)


def test_trials_that_fail_are_no_reason_to_stop():
    proposals = Learned({"rate": Uniform(1, 9, whole=True)}, trials=14, seed=0)
    for number in range(proposals.count):
        value = proposals.propose(number, 1)["rate"]
        assert isinstance(value, int)
        assert 1 <= value <= 9
        proposals.tell(number, math.nan if number % 2 else float(value))


class Drawn:
    def draw(self, random):
        return random.random()


@pytest.mark.parametrize(
    ("space", "trials", "message"),
    [
        (SPACE, None, "`trials` must say how many sets of values to try with sampler='tpe'"),
        (SPACE, 0, "`trials` must be a whole number of at least 1"),
        ([{"rate": 1.0}], 3, "`space` must be a mapping .* with sampler='tpe'"),
        ({"rate": Drawn()}, 3, r"`space\['rate'\]` must be a list, a Uniform or a LogUniform with sampler='tpe'"),
        ({"rate": []}, 3, r"`space\['rate'\]` must be a list of values"),
    ],
)
def test_what_it_cannot_choose_from_is_refused(space, trials, message):
    with pytest.raises(JobError, match=message):
        Learned(space, trials=trials, seed=0)
