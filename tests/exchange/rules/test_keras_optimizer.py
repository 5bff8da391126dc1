"""A Keras optimizer as a rule: what it does with contributions, with float state, and with slices."""

import threading

import keras
import numpy as np
import pytest

from keraunos.exchange.rules.registry import is_elementwise, make_rule, needs_norm
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice, cut
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(
    ("a/kernel", "a/bias", "b/kernel", "b/bias", "n/mean", "n/var"),
    ((7, 5), (5,), (5, 3), (3,), (4,), (4,)),
    trainable=4,
)
WHOLE = Slice(LAYOUT, 0, LAYOUT.size)
TRAINABLE = LAYOUT.trainable_size
ROWS = (8, 4, 2)


def start():
    return np.random.default_rng(1).normal(size=LAYOUT.size).astype(np.float32)


def contributions(rounds=4, length=LAYOUT.size):
    random = np.random.default_rng(2)
    return [
        [
            Sent((random.normal(size=length) * rows).astype(np.float32), (float(rows),), rows, staleness=rank)
            for rank, rows in enumerate(ROWS)
        ]
        for _ in range(rounds)
    ]


def trained(plan, servers=1):
    """The parameters after all contributions, held in so many slices."""
    slices = cut(LAYOUT, servers, anywhere=is_elementwise(plan))
    rules = [make_rule(plan, part, len(ROWS)) for part in slices]
    parameters = start()
    for sent in contributions():
        for group in [sent] if plan.synchronous else [[each] for each in sent]:
            mine = [
                [
                    Sent(np.concatenate(part.of_contribution(s.values, 1)), s.denominators, s.rows, s.staleness)
                    for s in group
                ]
                for part in slices
            ]
            norm = sum(r.squared_norm(m) for r, m in zip(rules, mine, strict=True)) if needs_norm(plan) else None
            for part, rule, each in zip(slices, rules, mine, strict=True):
                view = parameters[part.start : part.stop]
                rule.apply(each, view, view, squared_norm=norm)
    for part, rule in zip(slices, rules, strict=True):
        rule.finish(parameters[part.start : part.stop])
    return parameters


@pytest.mark.parametrize("send", ["gradients", "updates"])
@pytest.mark.parametrize("meet", ["synchronous", "asynchronous"])
def test_sgd_steps_against_what_is_sent(send, meet):
    plan = ExchangePlan(send, 1, meet, "sgd(learning_rate=0.5)")
    expected = np.float64(start())
    state, before = expected[TRAINABLE:], start()[TRAINABLE:]
    for sent in contributions():
        groups = [sent] if plan.synchronous else [[each] for each in sent]
        for group in groups:
            mean = np.sum([np.float64(each.values) for each in group], axis=0) / sum(each.rows for each in group)
            expected[:TRAINABLE] -= 0.5 * mean[:TRAINABLE]
            weight = 1 if plan.synchronous else 1 / 3
            state += weight * ((mean[TRAINABLE:] - state) if send == "gradients" else -mean[TRAINABLE:])
    np.testing.assert_allclose(trained(plan), expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(trained(plan)[TRAINABLE:], before)


@pytest.mark.parametrize(
    "rule",
    [
        "sgd(0.1, momentum=0.9, nesterov=True)",
        "adam(0.05)",
        "adamw(0.05, weight_decay=0.5, exclude_from_weight_decay=['bias'])",
        "nadam(0.05)",
        "ftrl(0.1)",
        "rmsprop(0.05)",
        "sgd(0.1, clipvalue=0.3)",
        "sgd(0.1, use_ema=True, ema_momentum=0.5)",
        "sgd(0.1, global_clipnorm=0.5)",
        pytest.param(
            "muon(0.05)", marks=pytest.mark.skipif(not hasattr(keras.optimizers, "Muon"), reason="a newer Keras")
        ),
        "adafactor(0.05)",
        "sgd(0.1, clipnorm=0.3)",
        "lamb(0.05, global_clipnorm=0.5)",
    ],
)
def test_three_slices_give_what_one_gives(rule):
    plan = ExchangePlan("gradients", 1, "synchronous", rule)
    np.testing.assert_allclose(trained(plan, servers=3), trained(plan), rtol=2e-6, atol=1e-7)


def test_parts_of_a_loss_reach_the_optimizer_as_one_gradient():
    plan = ExchangePlan("gradients", 1, "synchronous", "sgd(learning_rate=1.0)")
    values = np.random.default_rng(5).normal(size=2 * TRAINABLE + LAYOUT.state_size).astype(np.float32)
    parameters = start()
    make_rule(plan, WHOLE, 1).apply([Sent(values, (4.0, None), 8)], parameters, parameters)
    expected = start()[:TRAINABLE] - (values[:TRAINABLE] / 4 + values[TRAINABLE : 2 * TRAINABLE])
    np.testing.assert_allclose(parameters[:TRAINABLE], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(parameters[TRAINABLE:], values[2 * TRAINABLE :] / 8, rtol=1e-6)


def test_staleness_scales_the_learning_rate():
    stale = ExchangePlan("gradients", 1, "asynchronous", "sgd(learning_rate=0.6)", scale="staleness")
    parameters = start()
    sent = contributions()[0][2]
    make_rule(stale, WHOLE, 3).apply([sent], parameters, parameters)
    gradient = sent.values[:TRAINABLE] / sent.rows
    np.testing.assert_allclose(parameters[:TRAINABLE], start()[:TRAINABLE] - 0.2 * gradient, rtol=1e-5, atol=1e-6)


def test_a_rule_goes_on_from_its_state_and_its_rate_can_be_set():
    plan = ExchangePlan("gradients", 1, "synchronous", "adam(0.05)")
    first, second = make_rule(plan, WHOLE, 3), make_rule(plan, WHOLE, 3)
    parameters = start()
    rounds = contributions()
    for sent in rounds[:2]:
        first.apply(sent, parameters, parameters)
    second.restore(first.state())
    for sent in rounds[2:]:
        second.apply(sent, parameters, parameters)
    np.testing.assert_array_equal(parameters, trained(plan))
    second.learning_rate = 0.125
    assert second.learning_rate == 0.125


def test_a_slice_of_float_state_alone_needs_no_optimizer():
    plan = ExchangePlan("gradients", 1, "synchronous", "adam")
    part = Slice(LAYOUT, TRAINABLE, LAYOUT.size)
    rule = make_rule(plan, part, 2)
    parameters = np.zeros(part.size, np.float32)
    sent = [Sent(np.full(part.size, 6.0, np.float32), (2.0,), 2), Sent(np.full(part.size, 2.0, np.float32), (2.0,), 2)]
    rule.apply(sent, parameters, parameters)
    np.testing.assert_allclose(parameters, 2)
    assert rule.learning_rate is None


def test_threads_of_a_hogwild_plan_add_into_one_vector():
    layout = Layout(("w",), ((4000,),), trainable=1)
    plan = ExchangePlan("gradients", 1, "hogwild", "sgd(learning_rate=1.0)")
    rule = make_rule(plan, Slice(layout, 0, 4000), 2)
    parameters = np.zeros(4000, np.float32)
    times = 50

    def push():
        for _ in range(times):
            rule.apply([Sent(np.ones(4000, np.float32), (1.0,), 1)], parameters, parameters)

    threads = [threading.Thread(target=push) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Without locks some moves may be lost where threads meet; none is applied twice, and most arrive.
    applied = -parameters
    assert applied.max() <= 2 * times
    assert applied.mean() > times
