"""`settings`: what reaches the optimization, and the defaults that parameters start from."""

from dataclasses import asdict

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch
from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.errors import ModelError


def configured(**told):
    def configs():
        tch.settings(**{"batch_size": 16, **told})
        tch.outputs(tch.fc_layer(tch.data_layer("x", 4), 2))

    return parse_config(configs, "")


def changed(**told):
    """What of the optimization is not as Paddle leaves it."""
    plain = asdict(OptimizationConfig(batch_size=16, algorithm="sgd", learning_rate=1e-3))
    return {key: value for key, value in asdict(configured(**told).opt_config).items() if value != plain[key]}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, {}),
        ({"is_async": True}, {"algorithm": "async_sgd"}),
        ({"learning_method": tch.MomentumOptimizer(0.9, sparse=True)}, {"learning_method": "sparse_momentum"}),
        (
            {"learning_method": tch.AdamOptimizer(beta1=0.8, beta2=0.9, epsilon=1e-4)},
            {"learning_method": "adam", "adam_beta1": 0.8, "adam_beta2": 0.9, "adam_epsilon": 1e-4},
        ),
        ({"learning_method": tch.AdamaxOptimizer(0.8)}, {"learning_method": "adamax", "adam_beta1": 0.8}),
        ({"learning_method": tch.AdaGradOptimizer()}, {"learning_method": "adagrad"}),
        ({"learning_method": tch.RMSPropOptimizer(rho=0.5)}, {"learning_method": "rmsprop", "ada_rou": 0.5}),
        (
            {"learning_method": tch.DecayedAdaGradOptimizer(epsilon=1e-3)},
            {"learning_method": "decayed_adagrad", "ada_epsilon": 1e-3},
        ),
        ({"learning_method": tch.AdaDeltaOptimizer()}, {"learning_method": "adadelta"}),
        (
            {"model_average": tch.ModelAverage(0.5, max_average_window=100)},
            {"average_window": 0.5, "max_average_window": 100},
        ),
        (
            {
                "learning_rate": 0.1,
                "learning_rate_schedule": "manual",
                "learning_rate_args": "10:1.0,20:0.5",
                "learning_rate_decay_a": 0.3,
                "learning_rate_decay_b": 0.2,
            },
            {
                "learning_rate": 0.1,
                "learning_rate_schedule": "manual",
                "learning_rate_args": "10:1.0,20:0.5",
                "learning_rate_decay_a": 0.3,
                "learning_rate_decay_b": 0.2,
            },
        ),
    ],
)
def test_each_word_of_settings_reaches_the_optimization(told, expected):
    assert changed(**told) == expected


def test_momentum_decay_and_clipping_are_defaults_of_every_parameter():
    made = configured(
        learning_method=tch.MomentumOptimizer(0.9),
        regularization=tch.L2Regularization(8e-4),
        gradient_clipping_threshold=25,
    )
    assert [
        (each.momentum, each.decay_rate, each.gradient_clipping_threshold) for each in made.model_config.parameters
    ] == [(0.9, 8e-4, 25.0)] * 2


def test_defaults_of_one_configuration_do_not_reach_the_next():
    configured(learning_method=tch.MomentumOptimizer(0.9), regularization=[tch.L2Regularization(8e-4)])
    assert [(each.momentum, each.decay_rate) for each in configured().model_config.parameters] == [(0.0, 0.0)] * 2


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"learning_method": "adam"}, "AdamOptimizer\\(\\).*Received: 'adam'"),
        ({"regularization": [0.1]}, "L2Regularization\\(rate\\).*l1_rate"),
        ({"learning_rate_schedule": "cosine"}, "'discexp'"),
    ],
)
def test_what_is_no_setting_is_refused(told, words):
    with pytest.raises(ModelError, match=words):
        configured(**told)
