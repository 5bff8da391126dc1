"""The server's side: slices, trainers, lateness, averages, and what it remembers."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.compat.paddle.updates.plan import plan_of
from keraunos.errors import PlanError
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout
from tests.compat.paddle.updates import reference
from tests.compat.paddle.updates.training import (
    A_PASS,
    LAYOUT,
    ONE_PASS,
    ROWS,
    TRAINABLE,
    WHOLE,
    by_rule,
    configured,
    gradients,
    sent,
    start,
)

MIXED = configured(
    weight={"momentum": 0.9, "decay_rate": 0.1, "learning_rate": 0.5},
    bias={"gradient_clipping_threshold": 0.4},
    out={"decay_rate_l1": 0.1},
)


def rule_of(opt, *, trainers=1, parameters=MIXED, samples_per_pass=ONE_PASS):
    return make_rule(plan_of(opt, parameters, trainers, samples_per_pass=samples_per_pass), WHOLE, trainers)


def walked(rule, vector, rounds, *, first=0):
    """Where the vector is after each of some rounds."""
    path = []
    for gradient, rows in list(zip(gradients(), ROWS, strict=True))[first : first + rounds]:
        rule.apply(sent(gradient, rows), vector, vector)
        path.append(vector[:TRAINABLE].copy())
    return path


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(1, LAYOUT.size - 1), max_size=4), st.sampled_from(reference.METHODS))
def test_slices_give_what_the_whole_gives(cuts, method):
    opt = reference.settings(method, average_window=0.5, max_average_window=3)
    whole = by_rule(opt, MIXED, finish=True)
    np.testing.assert_array_equal(by_rule(opt, MIXED, cuts=cuts, finish=True), whole)


@pytest.mark.parametrize("method", reference.METHODS)
@pytest.mark.parametrize("trainers", [2, 4])
def test_trainers_that_share_a_batch_give_what_one_gives(method, trainers):
    opt = reference.settings(
        method, learning_rate_schedule="exp", learning_rate_decay_a=0.5, learning_rate_decay_b=30.0
    )
    alone = by_rule(opt, MIXED)
    # The sums of shares differ in their last bits, which a method that divides by a root of squares enlarges.
    np.testing.assert_allclose(by_rule(opt, MIXED, trainers=trainers), alone, rtol=2e-3, atol=2e-4)


def test_a_round_without_rows_changes_nothing_and_counts_for_nothing():
    opt = reference.settings("adam")
    rule, vector = rule_of(opt), start()
    rule.apply([Sent(np.ones(LAYOUT.size, np.float32), (None,), 0)], vector, vector)
    np.testing.assert_array_equal(vector, start())
    np.testing.assert_array_equal(walked(rule, vector, 3)[-1], walked(rule_of(opt), start(), 3)[-1])


def test_float_state_goes_to_its_mean_and_is_not_optimised():
    rule, vector = rule_of(reference.settings(), trainers=2), start()
    rule.apply(sent(gradients()[0], 8, trainers=2, state=7.0), vector, vector)
    np.testing.assert_allclose(vector[TRAINABLE:], 7.0)


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize(
    ("ratio", "trainers", "limit"), [(1.5, 4, 6), (2.0, 4, 8), (0.5, 4, 6), (1.0, 4, 6), (1.5, 3, 4)]
)
def test_what_lags_too_far_behind_is_dropped(ratio, trainers, limit, every):
    more = {"async_lagged_grad_discard_ratio": ratio, "num_batches_per_send_parameter": every}
    rule = rule_of(OptimizationConfig(batch_size=8, algorithm="async_sgd", **more), trainers=trainers)
    vector = start()
    # The steps behind which it lags are those of others and its own.
    rule.apply(sent(gradients()[0], 8, staleness=limit - 1), vector, vector)
    np.testing.assert_array_equal(vector, start())
    rule.apply(sent(gradients()[0], 8, staleness=limit - 2), vector, vector)
    assert np.any(vector[:TRAINABLE] != start()[:TRAINABLE])


def test_how_much_was_dropped_is_told_at_the_end(caplog):
    rule, vector = rule_of(OptimizationConfig(batch_size=8, algorithm="async_sgd"), trainers=4), start()
    for staleness in (0, 9, 9):
        rule.apply(sent(gradients()[0], 8, staleness=staleness), vector, vector)
    with caplog.at_level(logging.INFO):
        rule.finish(vector)
    assert "2 of 3 contributions" in caplog.text


def test_dropped_rows_do_not_advance_the_schedule():
    more = {"learning_rate_schedule": "exp", "learning_rate_decay_a": 0.5, "learning_rate_decay_b": 4.0}
    opt = OptimizationConfig(batch_size=8, algorithm="async_sgd", **more)
    vectors = []
    for late in (0, 3):
        rule, vector = rule_of(opt, trainers=4), start()
        for _ in range(late):
            rule.apply(sent(gradients()[1], 8, staleness=5), vector, vector)
        rule.apply(sent(gradients()[0], 8), vector, vector)
        vectors.append(vector)
    np.testing.assert_array_equal(*vectors)


def test_a_synchronous_server_drops_nothing():
    vector = start()
    rule_of(reference.settings(), trainers=2).apply(sent(gradients()[0], 8, trainers=2, staleness=50), vector, vector)
    assert np.any(vector[:TRAINABLE] != start()[:TRAINABLE])


class Window:
    """Paddle's windows, as lists of what is in them."""

    def __init__(self, window, most, least=10_000):
        self.window, self.most, self.least = window, most, min(least, most)
        self.open, self.before, self.updates = [], [], 0

    def add(self, values):
        self.open.append(np.float64(values))
        self.updates += 1
        if len(self.open) >= self.least and len(self.open) >= min(self.most, self.updates * self.window):
            self.before, self.open = self.open, []

    def mean(self):
        return np.mean([*self.before, *self.open], axis=0)


@pytest.mark.parametrize(("window", "most"), [(0.5, 3), (1.0, 2), (0.01, 1), (0.5, 10_000)])
def test_the_average_is_that_of_the_last_windows(window, most):
    rule = rule_of(reference.settings(average_window=window, max_average_window=most))
    vector, expected = start(), Window(window, most)
    for values in walked(rule, vector, len(ROWS)):
        expected.add(values)
    trained = vector.copy()
    rule.finish(vector)
    np.testing.assert_allclose(vector[:TRAINABLE], expected.mean(), rtol=1e-6)
    np.testing.assert_array_equal(vector[TRAINABLE:], trained[TRAINABLE:])


def test_without_a_maximum_the_window_is_the_last_pass():
    rule = rule_of(reference.settings(average_window=1.0), samples_per_pass=A_PASS)
    vector, expected = start(), Window(1.0, 2**63 - 1)
    for number, values in enumerate(walked(rule, vector, len(ROWS))):
        if number in (3, 6):
            expected.most, expected.least = 3, min(expected.least, number)
        expected.add(values)
    rule.finish(vector)
    np.testing.assert_allclose(vector[:TRAINABLE], expected.mean(), rtol=1e-6)


@pytest.mark.parametrize("method", reference.METHODS)
def test_a_server_goes_on_from_what_another_remembered(method):
    more = {"learning_rate_schedule": "pass_manual", "learning_rate_args": "0:1.0,1:0.5"}
    opt = reference.settings(method, average_window=0.5, **more)
    parameters = configured(weight={"num_batches_regularization": 2, "decay_rate": 0.1})
    one, vector = rule_of(opt, parameters=parameters, samples_per_pass=A_PASS), start()
    walked(one, vector, 4)
    other, moved = rule_of(opt, parameters=parameters, samples_per_pass=A_PASS), vector.copy()
    other.restore(one.state())
    walked(one, vector, 3, first=4)
    walked(other, moved, 3, first=4)
    np.testing.assert_array_equal(moved, vector)
    one.finish(vector)
    other.finish(moved)
    np.testing.assert_array_equal(moved, vector)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=4), st.floats(0.1, 2.0))
def test_changes_are_added_over_the_trainers_and_not_by_their_rows(rows, add_rate):
    trainers = len(rows)
    opt = reference.settings(num_batches_per_send_parameter=5, delta_add_rate=add_rate)
    rule = make_rule(plan_of(opt, MIXED, trainers), WHOLE, trainers)
    changes = np.random.default_rng(rows).normal(size=(trainers, LAYOUT.size))
    vector = start()
    contributions = [
        Sent((change * count).astype(np.float32), (float(count),), count)
        for change, count in zip(changes, rows, strict=True)
    ]
    rule.apply(contributions, vector, vector)
    expected = start()[:TRAINABLE] - add_rate / trainers * changes[:, :TRAINABLE].sum(axis=0)
    np.testing.assert_allclose(vector[:TRAINABLE], expected, rtol=1e-4, atol=1e-5)


def test_changes_are_averaged_over_updates_too():
    opt = reference.settings(num_batches_per_send_parameter=5, average_window=1.0, max_average_window=100)
    rule = rule_of(opt)
    vector, path = start(), []
    for number in range(3):
        rule.apply([Sent(np.full(LAYOUT.size, number, np.float32), (1.0,), 1)], vector, vector)
        path.append(vector[:TRAINABLE].copy())
    rule.finish(vector)
    np.testing.assert_allclose(vector[:TRAINABLE], np.mean(path, axis=0), rtol=1e-5)


def test_the_rate_is_the_settings_and_can_be_set():
    rule = rule_of(reference.settings())
    assert rule.learning_rate == 0.1
    rule.learning_rate = 0.0
    vector = start()
    walked(rule, vector, 1)
    np.testing.assert_allclose(vector[:TRAINABLE], start()[:TRAINABLE])


def test_a_plan_that_travelled_trains_the_same():
    plan = plan_of(reference.settings("rmsprop"), MIXED, 1)
    travelled = ExchangePlan.from_json(plan.to_json())
    assert travelled == plan
    vectors = [start(), start()]
    for each, vector in zip((plan, travelled), vectors, strict=True):
        walked(make_rule(each, WHOLE, 1), vector, 3)
    np.testing.assert_array_equal(*vectors)


def test_a_variable_of_no_parameter_is_named():
    layout = Layout(("fc/_fc.w0", "other/kernel"), ((5, 4), (2,)), trainable=2)
    with pytest.raises(PlanError, match=r"'other/kernel'.*made from the configuration"):
        make_rule(plan_of(reference.settings(), MIXED, 1), Slice(layout, 0, layout.size), 1)
