import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.tensorspark.core.weight_combiner import (
    DeltaWeightCombiner,
    MeanWeightCombiner,
    UpdateMeanWeightCombiner,
)
from keraunos.compat.tensorspark.rules import plan_with
from keraunos.errors import JobError, PlanError
from keraunos.exchange.rules.registry import is_elementwise, make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("W", "b"), ((2, 3), (3,)), trainable=2)
WHOLE = Slice(LAYOUT, 0, LAYOUT.size)

vectors = st.lists(st.integers(-100, 100), min_size=9, max_size=9).map(lambda each: np.array(each, np.float32))
pushes = st.lists(st.tuples(st.integers(0, 2), vectors, st.integers(1, 8)), min_size=1, max_size=12)


class Recorded:
    """A combiner as a user might write one; the base class is not needed."""

    def __init__(self):
        self.calls = []

    def compute(self, origin_weight, new_weight, worker_id=-1, name=None):
        self.calls.append((worker_id, name, origin_weight.shape))
        return np.maximum(origin_weight, new_weight)


def applied(plan, first, contributions, workers=3):
    """The parameters after each worker's weights came in, one at a time."""
    parameters = first.copy()
    rule = make_rule(plan, WHOLE, workers)
    for rank, vector, rows in contributions:
        values = (vector * np.float32(rows)).astype(np.float32)
        rule.apply([Sent(values, (float(rows),), rows, rank=rank)], parameters, parameters)
    return parameters


def combined(combiner, first, contributions):
    weights = first.astype(np.float64)
    for rank, vector, _ in contributions:
        weights = combiner.compute(weights, vector, worker_id=rank, name="all")
    return weights


@given(vectors, pushes, st.integers(1, 6))
def test_the_rule_of_the_mean_is_the_combiners(first, contributions, num):
    with plan_with(MeanWeightCombiner(num), 5) as plan:
        found = applied(plan, first, contributions)
    np.testing.assert_allclose(found, combined(MeanWeightCombiner(num), first, contributions), rtol=1e-4, atol=1e-3)


@given(vectors, pushes)
def test_without_a_combiner_it_is_the_mean_over_the_workers(first, contributions):
    with plan_with(None, 5) as plan:
        found = applied(plan, first, contributions)
    np.testing.assert_allclose(found, combined(MeanWeightCombiner(3), first, contributions), rtol=1e-4, atol=1e-3)


@given(vectors, pushes)
def test_the_rule_of_the_update_mean_is_the_combiners(first, contributions):
    with plan_with(UpdateMeanWeightCombiner(), 5) as plan:
        found = applied(plan, first, contributions)
    np.testing.assert_allclose(found, combined(UpdateMeanWeightCombiner(), first, contributions), rtol=1e-4, atol=1e-3)


def test_a_server_that_was_kept_does_not_begin_again():
    first, pushed = np.zeros(9, np.float32), np.full(9, 4.0, np.float32)
    with plan_with(UpdateMeanWeightCombiner(), 5, begun=True) as plan:
        assert applied(plan, first, [(0, pushed, 2)]).tolist() == [2.0] * 9


def test_the_count_of_updates_can_be_restored():
    with plan_with(UpdateMeanWeightCombiner(), 5) as plan:
        rule, other = (make_rule(plan, WHOLE, 2) for _ in range(2))
    parameters = np.zeros(9, np.float32)
    rule.apply([Sent(np.full(9, 4.0, np.float32), (1.0,), 1)], parameters, parameters)
    other.restore(rule.state())
    other.apply([Sent(np.full(9, 8.0, np.float32), (1.0,), 1)], parameters, parameters)
    assert parameters.tolist() == [6.0] * 9


@given(vectors, pushes)
def test_the_rule_of_the_delta_adds_every_change_whole(first, changes):
    with plan_with(DeltaWeightCombiner(), 5) as plan:
        # An update is what the weights were minus what they became.
        found = applied(plan, first, [(rank, -change, rows) for rank, change, rows in changes])
    np.testing.assert_allclose(found, first + sum(change for _, change, _ in changes), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("combiner", "answers"),
    [
        (None, ("weights", 7, "asynchronous", "moving_average", {})),
        (MeanWeightCombiner(4), ("weights", 7, "asynchronous", "moving_average", {"n": 4})),
        (MeanWeightCombiner(4.0), ("weights", 7, "asynchronous", "moving_average", {"n": 4})),
        (UpdateMeanWeightCombiner(), ("weights", 7, "asynchronous", "tensorspark_update_mean", {"version": 0})),
        (DeltaWeightCombiner(), ("updates", 7, "asynchronous", "add", {})),
    ],
)
def test_the_plans_of_the_combiners(combiner, answers):
    with plan_with(combiner, 7) as plan:
        assert (plan.send, plan.every, plan.meet, plan.rule.name, dict(plan.rule.options)) == answers
        assert plan == ExchangePlan.from_json(plan.to_json())
        assert not plan.waits


def test_a_mean_over_no_whole_number_is_called_as_it_is():
    with plan_with(MeanWeightCombiner(2.5), 5) as plan:
        found = applied(plan, np.zeros(9, np.float32), [(0, np.full(9, 5.0, np.float32), 1)])
    np.testing.assert_allclose(found, 2.0)


def test_a_users_combiner_is_called_for_each_variable_of_each_contribution():
    combiner = Recorded()
    first = np.arange(9, dtype=np.float32)
    with plan_with(combiner, 5) as plan:
        assert not is_elementwise(plan)
        found = applied(plan, first, [(2, first[::-1].copy(), 3), (0, first, 1)])
    np.testing.assert_allclose(found, np.maximum(first, first[::-1]), rtol=1e-6)
    assert combiner.calls == [(2, "W:0", (2, 3)), (2, "b:0", (3,)), (0, "W:0", (2, 3)), (0, "b:0", (3,))]


def test_a_combiner_that_gives_another_shape_is_told_so():
    class Wrong:
        def compute(self, origin_weight, new_weight, worker_id=-1, name=None):
            return 0.0

    with plan_with(Wrong(), 5) as plan, pytest.raises(ValueError, match="a weight of the shape of 'W:0'"):
        applied(plan, np.zeros(9, np.float32), [(0, np.zeros(9, np.float32), 1)])


def test_a_users_combiner_is_there_during_its_run_only():
    with plan_with(Recorded(), 5) as plan:
        make_rule(plan, WHOLE, 1)
    with pytest.raises(PlanError, match="in the process whose combiner it calls"):
        make_rule(plan, WHOLE, 1)


@pytest.mark.parametrize("combiner", ["mean", MeanWeightCombiner, 3, object()])
def test_what_is_no_combiner_is_refused(combiner):
    with (
        pytest.raises(JobError, match="`weight_combiner` must be an object with the method `compute"),
        plan_with(combiner, 5),
    ):
        pass
