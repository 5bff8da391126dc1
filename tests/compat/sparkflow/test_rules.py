"""The ten optimizers on the server against TensorFlow's own, step by step."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.compat.sparkflow import rules
from keraunos.compat.sparkflow.optimizers import OPTIMIZERS, rule_of
from keraunos.exchange.rules import elementwise
from keraunos.exchange.rules.registry import is_elementwise, make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice, cut
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

SIZE = 100
STEPS = 20
LAYOUT = Layout(("w", "mean"), ((SIZE,), (3,)), trainable=1)

CASES = {
    "adam": {},
    "adam, other moments": {"beta1": 0.7, "beta2": 0.9, "epsilon": 0.01},
    "rmsprop": {},
    "rmsprop, momentum": {"decay": 0.8, "momentum": 0.5, "epsilon": 1e-3},
    "rmsprop, centered": {"centered": True, "momentum": 0.3, "epsilon": 1e-2},
    "momentum": {},
    "momentum, nesterov": {"momentum": 0.6, "use_nesterov": True},
    "adadelta": {},
    "adadelta, long memory": {"rho": 0.5, "epsilon": 1e-3},
    "adagrad": {},
    "adagrad, large accumulator": {"initial_accumulator": 2.0},
    "gradient_descent": {},
    "adagrad_da": {},
    "adagrad_da, both strengths": {"l1_regularization_strength": 0.05, "l2_regularization_strength": 0.2},
    "ftrl": {},
    "ftrl, all strengths": {
        "l1_regularization_strength": 0.05,
        "l2_regularization_strength": 0.1,
        "l2_shrinkage_regularization_strength": 0.03,
        "beta": 0.4,
    },
    "ftrl, another power": {"learning_rate_power": -0.3, "initial_accumulator_value": 0.5},
    "proximal_adagrad": {},
    "proximal_adagrad, both strengths": {"l1_regularization_strength": 0.05, "l2_regularization_strength": 0.2},
    "proximal_gradient_descent": {},
    "proximal_gradient_descent, both strengths": {
        "l1_regularization_strength": 0.05,
        "l2_regularization_strength": 0.2,
    },
}


def start_and_gradients(seed):
    random = np.random.default_rng(seed)
    start = random.normal(size=SIZE).astype(np.float32)
    gradients = random.normal(size=(STEPS, SIZE)).astype(np.float32)
    gradients[:, :3] = 0
    return start, gradients


def tensorflows(name, rate, options, start, gradients):
    """The parameters after each step of TensorFlow's own optimizer."""
    v1 = tf.compat.v1
    options = {"initial_accumulator_value" if key == "initial_accumulator" else key: options[key] for key in options}
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("w", initializer=start)
        step = v1.train.get_or_create_global_step()
        if name == "adagrad_da":
            options = {**options, "global_step": step}
        if name == "momentum":
            options = {"momentum": 0.9, **options}
        optimizer = getattr(v1.train, OPTIMIZERS[name].tensorflow)(learning_rate=rate, **options)
        gradient = v1.placeholder(tf.float32, [SIZE])
        train = optimizer.apply_gradients([(gradient, variable)], global_step=step)
        session.run(v1.global_variables_initializer())
        after = []
        for each in gradients:
            session.run(train, {gradient: each})
            after.append(session.run(variable))
    return after


def rule_for(name, rate, options=None, *, meet="asynchronous", part=None, workers=1, **more):
    plan = ExchangePlan("gradients", 1, meet, rule_of(name, rate, options or {}), **more)
    return make_rule(plan, part or Slice(LAYOUT, 0, LAYOUT.size), workers)


def stepped(rule, parameters, gradient, *, rows=4, state=None):
    """Let the rule take in a worker's gradient: the numerator, and the float state times the rows."""
    state = np.zeros(3, np.float32) if state is None else state
    values = np.concatenate([gradient * np.float32(rows), state * np.float32(rows)]).astype(np.float32)
    rule.apply([Sent(values, (float(rows),), rows)], parameters, parameters)


@pytest.mark.parametrize("case", CASES)
def test_every_step_is_tensorflows(case):
    name, options = case.partition(",")[0], CASES[case]
    start, gradients = start_and_gradients(len(case))
    rate = 0.05
    rule = rule_for(name, rate, options)
    parameters = np.concatenate([start, np.zeros(3, np.float32)])
    for gradient, expected in zip(gradients, tensorflows(name, rate, options, start, gradients), strict=True):
        stepped(rule, parameters, gradient)
        # Single precision on both sides, each step from where the one before ended.
        np.testing.assert_allclose(parameters[:SIZE], expected, rtol=1e-4, atol=1e-6)


@given(seed=st.integers(0, 1000), block=st.integers(1, 50), slices=st.integers(1, 5))
@settings(max_examples=10)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_blocks_and_slices_change_nothing(name, seed, block, slices):
    start, gradients = start_and_gradients(seed)
    strengths = {key: 0.05 for key in OPTIMIZERS[name].options if key.startswith(("l1_", "l2_"))}
    whole = np.concatenate([start, np.zeros(3, np.float32)])
    rule = rule_for(name, 0.1, strengths)
    for gradient in gradients:
        stepped(rule, whole, gradient)

    cut_up = np.concatenate([start, np.zeros(3, np.float32)])
    parts = cut(LAYOUT, slices, anywhere=is_elementwise(rule.plan))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elementwise, "BLOCK", block)
        rules = [rule_for(name, 0.1, strengths, part=part) for part in parts]
        for gradient in gradients:
            values = np.concatenate([gradient, np.zeros(3, np.float32)])
            for part, each in zip(parts, rules, strict=True):
                view = cut_up[part.start : part.stop]
                each.apply([Sent(values[part.start : part.stop], (1.0,), 1)], view, view)
    np.testing.assert_allclose(cut_up, whole, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_a_rule_remembers_can_be_carried_on(name):
    start, gradients = start_and_gradients(5)
    through = np.concatenate([start, np.zeros(3, np.float32)])
    rule = rule_for(name, 0.1)
    for gradient in gradients[:10]:
        stepped(rule, through, gradient)
    carried, continued = through.copy(), rule_for(name, 0.1)
    continued.restore(rule.state())
    for gradient in gradients[10:]:
        stepped(rule, through, gradient)
        stepped(continued, carried, gradient)
    np.testing.assert_array_equal(carried, through)


def test_float_state_moves_towards_the_sender_by_its_share():
    parameters = np.zeros(LAYOUT.size, np.float32)
    stepped(rule_for("adam", 0.1, workers=4), parameters, np.zeros(SIZE, np.float32), state=np.full(3, 8, np.float32))
    np.testing.assert_allclose(parameters[SIZE:], 2.0)
    np.testing.assert_array_equal(parameters[:SIZE], 0)


def test_the_plans_scale_is_a_factor_on_the_learning_rate():
    start, gradients = start_and_gradients(1)
    half, full = (np.concatenate([start, np.zeros(3, np.float32)]) for _ in range(2))
    stepped(rule_for("adam", 0.2, scale=0.5), half, gradients[0])
    stepped(rule_for("adam", 0.1), full, gradients[0])
    np.testing.assert_allclose(half, full)


def test_threads_without_locks_lose_no_step():
    rule = rule_for("adam", 0.001, meet="hogwild", workers=4)
    parameters = np.zeros(LAYOUT.size, np.float32)
    gradient = np.ones(SIZE, np.float32)
    threads = [
        threading.Thread(target=lambda: [stepped(rule, parameters, gradient) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(rule.state()[-1]) == 800
    assert np.isfinite(parameters).all()
    assert (parameters[:SIZE] < -0.5).all()


@pytest.mark.parametrize("name", ["adam", "adadelta", "rmsprop"])
def test_a_step_amid_another_threads_step_is_no_giant_one(name, monkeypatch):
    rule = rule_for(name, 0.05, meet="hogwild", workers=2)
    parameters = np.zeros(LAYOUT.size, np.float32)
    average, amid = rules.Approaching.average, []

    def interrupted(*arguments):
        average(*arguments)
        if not amid:
            amid.append("the other thread, which has nothing to add here")
            other = threading.Thread(target=lambda: stepped(rule, parameters, np.zeros(SIZE, np.float32)))
            other.start()
            other.join()
            amid.clear()

    monkeypatch.setattr(rules.Approaching, "average", interrupted)
    for _ in range(3):
        stepped(rule, parameters, np.ones(SIZE, np.float32))
    assert np.abs(parameters).max() < 2
