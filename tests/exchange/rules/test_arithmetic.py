"""The rules of plain arithmetic against the formulas they stand for, in double precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.rules import elastic, sums
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice, cut
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "b", "mean"), ((3, 2), (2,), (4,)), trainable=2)
WHOLE = Slice(LAYOUT, 0, LAYOUT.size)
TRAINABLE = LAYOUT.trainable_size
sizes = st.lists(st.integers(1, 100), min_size=1, max_size=5)
close = {"rtol": 2e-5, "atol": 2e-6}


def vectors(rows, length=LAYOUT.size):
    random = np.random.default_rng([len(rows), *rows])
    return [random.normal(size=length).astype(np.float32) for _ in rows]


def times_rows(vector, rows, staleness=0):
    return Sent(vector * np.float32(rows), (float(rows),), rows, staleness)


def rule_of(*answers, workers=4, part=WHOLE, **more):
    return make_rule(ExchangePlan(*answers, **more), part, workers)


def applied(rule, sent, parameters):
    result = parameters.copy() if not rule.gives_parameters else parameters
    rule.apply(sent, parameters, result)
    return result


def start():
    return np.linspace(-1, 1, LAYOUT.size, dtype=np.float32)


@given(sizes)
def test_own_gives_the_gradient_of_the_global_batch_and_the_mean_state_and_moves_nothing(rows):
    given_ = vectors(rows)
    parameters = start()
    sent = [times_rows(vector, count) for vector, count in zip(given_, rows, strict=True)]
    result = applied(rule_of("gradients", 1, "synchronous", "own"), sent, parameters)
    np.testing.assert_allclose(result, np.average(np.float64(given_), axis=0, weights=rows), **close)
    np.testing.assert_array_equal(parameters, start())


@given(sizes)
def test_parts_of_a_loss_are_divided_each_by_its_own_denominators(rows):
    given_ = vectors(rows, 2 * TRAINABLE + LAYOUT.state_size)
    sent = [Sent(vector, (None, 2.0 * count), count) for vector, count in zip(given_, rows, strict=True)]
    result = applied(rule_of("gradients", 1, "synchronous", "own"), sent, start())
    total = np.sum(given_, axis=0, dtype=np.float64)
    expected = total[:TRAINABLE] + total[TRAINABLE : 2 * TRAINABLE] / (2 * sum(rows))
    np.testing.assert_allclose(result[:TRAINABLE], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result[TRAINABLE:], total[2 * TRAINABLE :] / sum(rows), rtol=1e-4, atol=1e-5)


def test_a_round_whose_denominators_are_all_zero_has_no_gradient():
    sent = [Sent(np.zeros(LAYOUT.size, np.float32), (0.0,), 4)]
    np.testing.assert_array_equal(applied(rule_of("gradients", 1, "synchronous", "own"), sent, start()), 0)


@given(sizes)
def test_the_sum_runs_in_the_order_given(rows):
    given_ = vectors(rows, 1000)
    out = np.empty(1000, np.float32)
    sums.weighted_sum(given_, 1.0, out, accumulate=False)
    expected = given_[0].copy()
    for each in given_[1:]:
        expected += each
    np.testing.assert_array_equal(out, expected)


@given(sizes)
def test_the_mean_of_updates_counts_each_by_its_rows(rows):
    given_ = vectors(rows)
    parameters = start()
    sent = [times_rows(vector, count) for vector, count in zip(given_, rows, strict=True)]
    applied(rule_of("updates", 5, "synchronous", "mean"), sent, parameters)
    np.testing.assert_allclose(parameters, start() - np.average(np.float64(given_), axis=0, weights=rows), **close)


@given(sizes)
def test_a_stretched_mean_moves_further_but_not_its_state(rows):
    given_ = vectors(rows)
    parameters = start()
    sent = [times_rows(vector, count) for vector, count in zip(given_, rows, strict=True)]
    applied(rule_of("updates", 5, "synchronous", "mean", scale="stretched"), sent, parameters)
    mean = np.average(np.float64(given_), axis=0, weights=rows)
    mean[:TRAINABLE] *= min(len(rows) ** 0.5, 1.5)
    np.testing.assert_allclose(parameters, start() - mean, **close)


@given(st.integers(1, 100))
def test_a_stretched_update_moves_further_but_not_its_state(rows):
    (update,) = vectors([rows])
    parameters = start()
    applied(rule_of("updates", 5, "asynchronous", "add", scale="stretched"), [times_rows(update, rows)], parameters)
    factors = np.where(np.arange(update.size) < TRAINABLE, 1.5 / 4, 1 / 4)
    np.testing.assert_allclose(parameters, start() - factors * np.float64(update), **close)


@given(sizes)
def test_the_mean_of_weights_takes_the_place_of_the_parameters(rows):
    given_ = vectors(rows)
    parameters = start()
    sent = [times_rows(vector, count) for vector, count in zip(given_, rows, strict=True)]
    applied(rule_of("weights", 5, "synchronous", "mean"), sent, parameters)
    np.testing.assert_allclose(parameters, np.average(np.float64(given_), axis=0, weights=rows), **close)


@given(sizes)
def test_the_sum_of_updates_takes_whole_updates_and_the_mean_of_the_state(rows):
    given_ = vectors(rows)
    parameters = start()
    sent = [times_rows(vector, count) for vector, count in zip(given_, rows, strict=True)]
    applied(rule_of("updates", 5, "synchronous", "sum"), sent, parameters)
    whole = start() - np.sum(given_, axis=0, dtype=np.float64)
    np.testing.assert_allclose(parameters[:TRAINABLE], whole[:TRAINABLE], rtol=1e-4, atol=1e-5)
    mean = start() - np.average(np.float64(given_), axis=0, weights=rows)
    np.testing.assert_allclose(parameters[TRAINABLE:], mean[TRAINABLE:], **close)


@given(
    st.integers(1, 100),
    st.integers(0, 20),
    st.one_of(st.sampled_from([None, "workers", "staleness"]), st.floats(0.1, 2)),
)
@pytest.mark.parametrize("meet", ["asynchronous", "hogwild", "bounded(2)"])
def test_an_added_update_is_scaled(meet, rows, staleness, scale):
    (update,) = vectors([rows])
    parameters = start()
    rule = rule_of("updates", 5, meet, "add", scale=scale)
    applied(rule, [times_rows(update, rows, staleness)], parameters)
    factor = {None: 1 / 4, "workers": 1 / 4, "staleness": 1 / (1 + staleness)}.get(scale, scale)
    np.testing.assert_allclose(parameters, start() - factor * np.float64(update), **close)


@given(sizes, st.one_of(st.none(), st.integers(1, 9)))
def test_the_moving_average_follows_each_worker_in_turn(rows, n):
    given_ = vectors(rows)
    parameters = start()
    rule = rule_of("weights", 5, "asynchronous", "moving_average" if n is None else f"moving_average({n})")
    expected = np.float64(start())
    for vector, count in zip(given_, rows, strict=True):
        applied(rule, [times_rows(vector, count)], parameters)
        expected = ((n or 4) - 1) / (n or 4) * expected + np.float64(vector) / (n or 4)
    np.testing.assert_allclose(parameters, expected, rtol=1e-4, atol=1e-5)


@given(sizes, st.floats(0.01, 0.99))
def test_the_center_is_pulled_by_every_worker_and_gives_where_it_was(rows, alpha):
    given_ = vectors(rows)
    parameters = start()
    sent = [times_rows(vector, count) for vector, count in zip(given_, rows, strict=True)]
    result = applied(rule_of("weights", 10, "synchronous", f"elastic({alpha})"), sent, parameters)
    np.testing.assert_array_equal(result, start())
    pulled = start() + alpha * np.sum(np.float64(given_) - start(), axis=0)
    np.testing.assert_allclose(parameters, pulled, rtol=1e-4, atol=1e-5)


def test_elastic_stands_still_where_all_agree_and_otherwise_brings_them_together():
    plan = ExchangePlan.named("elastic")
    rule, alpha = make_rule(plan, WHOLE, 2), elastic.alpha_of(plan, 2)
    assert alpha == 0.45
    center, workers = start(), [start(), start()]
    applied(rule, [times_rows(workers[0], 8)], center)
    np.testing.assert_array_equal(center, start())
    workers[1] += 3
    sum_before = center + workers[0] + workers[1]
    for _ in range(60):
        for weights in workers:
            got = applied(rule, [times_rows(weights, 8)], center)
            elastic.pull(weights, got, alpha)
    # What a worker gives up the center gains, so that all meet at the mean of where they began.
    for each in (center, *workers):
        np.testing.assert_allclose(each, sum_before / 3, rtol=1e-4, atol=1e-4)


def delayed_reference(updates, workers, rate, beta, delay, c):
    """The paper's update, with updates divided by the workers."""
    weights, momentum, gathered = np.zeros(TRAINABLE), np.zeros(TRAINABLE), np.zeros(TRAINABLE)
    for step, sent in enumerate(updates, start=1):
        update = np.float64(sent[:TRAINABLE]) / workers
        gathered += update
        if step % delay == 0:
            momentum = beta * momentum + gathered
            weights -= rate * ((1 - c * delay + c) * beta * momentum + update)
            gathered = np.zeros(TRAINABLE)
        else:
            weights -= rate * (c * beta * momentum + update)
    return weights


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 4), st.sampled_from([0.0, 0.1]))
def test_delayed_nesterov_applies_each_update_at_once_and_momentum_now_and_then(rows, delay, activation):
    updates = vectors(rows)
    parameters = np.zeros(LAYOUT.size, np.float32)
    rule = rule_of("updates", 5, "asynchronous", f"delayed_nesterov(0.7, 0.9, {delay}, {activation})")
    for update, count in zip(updates, rows, strict=True):
        applied(rule, [times_rows(update, count)], parameters)
    expected = delayed_reference(updates, 4, 0.7, 0.9, delay, activation)
    np.testing.assert_allclose(parameters[:TRAINABLE], expected, rtol=1e-4, atol=1e-5)
    state = -np.sum(updates, axis=0, dtype=np.float64)[TRAINABLE:] / 4
    np.testing.assert_allclose(parameters[TRAINABLE:], state, rtol=1e-4, atol=1e-5)


def test_delayed_nesterov_goes_on_from_its_state():
    updates = vectors(list(range(1, 9)))
    plan = ExchangePlan("updates", 5, "asynchronous", "delayed_nesterov")
    one, other = make_rule(plan, WHOLE, 3), make_rule(plan, WHOLE, 3)
    straight, resumed = start(), start()
    for update in updates:
        applied(one, [times_rows(update, 1)], straight)
    for update in updates[:4]:
        applied(other, [times_rows(update, 1)], resumed)
    fresh = make_rule(plan, WHOLE, 3)
    fresh.restore(other.state())
    for update in updates[4:]:
        applied(fresh, [times_rows(update, 1)], resumed)
    np.testing.assert_array_equal(resumed, straight)


PLANS = [
    ("updates", "synchronous", "mean"),
    ("updates", "synchronous", "sum"),
    ("updates", "asynchronous", "add"),
    ("updates", "asynchronous", "delayed_nesterov"),
    ("weights", "asynchronous", "moving_average"),
    ("weights", "synchronous", "elastic"),
]


@pytest.mark.parametrize(("send", "meet", "name"), PLANS)
@given(st.integers(1, 5))
def test_slices_give_the_bits_of_the_whole(send, meet, name, servers):
    plan = ExchangePlan(send, 5, meet, name)
    rounds = [vectors([3, 5, number]) for number in range(1, 4)]
    whole, cut_up = start(), start()
    rule = make_rule(plan, WHOLE, 3)
    slices = cut(LAYOUT, servers, anywhere=True)
    rules = [make_rule(plan, part, 3) for part in slices]
    for given_ in rounds:
        sent = [times_rows(vector, 8) for vector in given_]
        for group in [sent] if plan.synchronous else [[each] for each in sent]:
            applied(rule, group, whole)
            for part, each in zip(slices, rules, strict=True):
                mine = [Sent(s.values[part.start : part.stop], s.denominators, s.rows) for s in group]
                applied(each, mine, cut_up[part.start : part.stop])
    np.testing.assert_array_equal(cut_up, whole)


def test_long_vectors_are_summed_as_short_ones_are():
    random = np.random.default_rng(3)
    layout = Layout(("w",), ((200_000,),), trainable=1)
    given_ = [random.normal(size=200_000).astype(np.float32) for _ in range(3)]
    parameters = np.ones(200_000, np.float32)
    rule = rule_of("updates", 5, "synchronous", "mean", part=Slice(layout, 0, layout.size))
    applied(rule, [times_rows(vector, 2) for vector in given_], parameters)
    np.testing.assert_allclose(parameters, 1 - np.mean(given_, axis=0, dtype=np.float64), **close)
    assert sums.squared_norm(given_[0]) == pytest.approx(np.sum(np.float64(given_[0]) ** 2), rel=1e-6)
