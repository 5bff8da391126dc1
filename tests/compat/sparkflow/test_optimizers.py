import json

import pytest
import tensorflow as tf

from keraunos.compat.sparkflow import graph_utils
from keraunos.compat.sparkflow.optimizers import OPTIMIZERS, locks, read_options, rule_of, rule_of_optimizer
from keraunos.errors import JobError

v1 = tf.compat.v1.train


def test_there_are_ten():
    assert list(OPTIMIZERS) == [
        "adam", "rmsprop", "momentum", "adadelta", "adagrad", "gradient_descent", "adagrad_da", "ftrl",
        "proximal_adagrad", "proximal_gradient_descent",
    ]  # fmt: skip


def test_an_unknown_name_is_refused_with_the_ten():
    with pytest.raises(JobError, match=r"`tfOptimizer` must be one of 'adam', .*Received: 'adm'. Did you mean 'adam'"):
        rule_of("adm", 0.1)


@pytest.mark.parametrize(
    ("name", "learning_rate", "options", "expected"),
    [
        ("adam", 0.5, None, {"learning_rate": 0.5, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
        ("adam", None, {"beta1": 0.5}, {"learning_rate": 0.001, "beta1": 0.5, "beta2": 0.999, "epsilon": 1e-8}),
        ("adam", 0.5, {"beta1": 0.5}, {"learning_rate": 0.5, "beta1": 0.5, "beta2": 0.999, "epsilon": 1e-8}),
        ("momentum", 0.01, None, {"learning_rate": 0.01, "momentum": 0.9, "use_nesterov": False}),
        ("adagrad", 0.01, {"initial_accumulator": 3}, {"learning_rate": 0.01, "initial_accumulator_value": 3}),
        ("gradient_descent", 0.01, {"learning_rate": 0.2}, {"learning_rate": 0.2}),
    ],
)
def test_options_go_before_the_learning_rate_and_that_before_tensorflows_default(
    name, learning_rate, options, expected
):
    rule = rule_of(name, learning_rate, options)
    assert rule.name == f"tf1_{name}"
    assert dict(rule.options) == {**expected, "use_locking": False}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("adam", {"beta": 1}, r"`optimizerOptions for 'adam'` must be one of .*'beta1'.*Received: 'beta'"),
        ("adam", {"beta1": 2}, r"`beta1` of the optimizer 'adam' must be a number from 0 to 1. Received: 2"),
        ("adam", {"epsilon": "small"}, r"`epsilon` .* must be a number"),
        ("adagrad", {"initial_accumulator": 0}, r"`initial_accumulator_value` .* must be a number above 0"),
        ("momentum", {"use_nesterov": 1}, r"`use_nesterov` .* must be true or false. Received: 1"),
        ("ftrl", {"learning_rate_power": 0.5}, r"`learning_rate_power` .* from -inf to 0. Received: 0.5"),
        ("ftrl", {"accum_name": "a"}, r"must not hold 'accum_name'.*leave it out"),
        ("adagrad_da", {"global_step": 3}, r"must not hold 'global_step': the parameter server counts"),
    ],
)
def test_an_option_that_is_wrong_is_refused(name, options, message):
    with pytest.raises(JobError, match=message):
        rule_of(name, 0.1, options)


@pytest.mark.parametrize("text", ["{", "[1]", 3])
def test_options_must_be_an_object_in_json(text):
    with pytest.raises(JobError, match=r"`optimizerOptions` must be .*JSON"):
        read_options(text)


@pytest.mark.parametrize(
    ("helper", "name"),
    [
        ("build_adam_config", "adam"),
        ("build_rmsprop_config", "rmsprop"),
        ("build_momentum_config", "momentum"),
        ("build_adadelta_config", "adadelta"),
        ("build_adagrad_config", "adagrad"),
        ("build_gradient_descent", "gradient_descent"),
    ],
)
def test_what_the_helpers_write_is_what_the_optimizer_takes(helper, name):
    text = getattr(graph_utils, helper)(learning_rate=0.25, use_locking=True)
    rule = rule_of(name, 0.01, read_options(text))
    assert rule.options["learning_rate"] == 0.25
    assert locks(rule)
    assert set(json.loads(text)) == set(rule.options)
    assert json.loads(getattr(graph_utils, helper)())["learning_rate"] == 0.001


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: v1.AdamOptimizer(0.1, beta1=0.8), ("tf1_adam", {"learning_rate": 0.1, "beta1": 0.8})),
        (lambda: v1.AdamOptimizer(lambda: 0.3), ("tf1_adam", {"learning_rate": 0.3})),
        (
            lambda: v1.RMSPropOptimizer(0.1, momentum=0.4, centered=True, use_locking=True),
            ("tf1_rmsprop", {"learning_rate": 0.1, "momentum": 0.4, "centered": True, "use_locking": True}),
        ),
        (
            lambda: v1.MomentumOptimizer(0.1, 0.5, use_nesterov=True),
            ("tf1_momentum", {"momentum": 0.5, "use_nesterov": True}),
        ),
        (lambda: v1.AdadeltaOptimizer(1.0, rho=0.9), ("tf1_adadelta", {"learning_rate": 1.0, "rho": 0.9})),
        (lambda: v1.AdagradOptimizer(0.2), ("tf1_adagrad", {"initial_accumulator_value": 0.1})),
        (lambda: v1.GradientDescentOptimizer(0.2), ("tf1_gradient_descent", {"learning_rate": 0.2})),
        (
            lambda: v1.AdagradDAOptimizer(0.2, None, l1_regularization_strength=0.5),
            ("tf1_adagrad_da", {"l1_regularization_strength": 0.5}),
        ),
        (lambda: v1.FtrlOptimizer(0.2, beta=0.5), ("tf1_ftrl", {"beta": 0.5, "learning_rate_power": -0.5})),
        (
            lambda: v1.ProximalAdagradOptimizer(0.2, l2_regularization_strength=0.5),
            ("tf1_proximal_adagrad", {"l2_regularization_strength": 0.5}),
        ),
        (lambda: v1.ProximalGradientDescentOptimizer(0.2), ("tf1_proximal_gradient_descent", {"learning_rate": 0.2})),
    ],
)
def test_an_object_of_tensorflows_becomes_the_rule_of_its_name(make, expected):
    rule = rule_of_optimizer(make())
    name, options = expected
    assert rule.name == name
    assert options.items() <= rule.options.items()


def test_what_build_optimizer_gave_and_a_name_are_taken_too():
    rule = rule_of("adam", 0.5)
    assert rule_of_optimizer(rule) is rule
    assert rule_of_optimizer("ftrl").options["learning_rate"] == 0.01


def test_any_other_object_is_refused():
    with pytest.raises(JobError, match=r"`optimizer` must be one of AdamOptimizer.*Received: None"):
        rule_of_optimizer(None)
    with tf.Graph().as_default(), pytest.raises(JobError, match=r"`learning_rate` of the optimizer must be a number"):
        rule_of_optimizer(v1.GradientDescentOptimizer(tf.constant(0.1)))
