"""From settings to a plan, as a table; and what is refused."""

import logging

import pytest

from keraunos.compat.paddle.model_config import OptimizationConfig
from keraunos.compat.paddle.updates.plan import needs_samples_per_pass, optimizer_of, plan_of
from keraunos.errors import PlanError
from tests.compat.paddle.updates.reference import parameter


def settings(**more):
    return OptimizationConfig(**{"batch_size": 32, "algorithm": "sgd", **more})


N = "num_batches_per_send_parameter"
ELASTIC = {N: 5, "center_parameter_update_method": "elastic_average"}


@pytest.mark.parametrize(
    ("given", "trainers", "expected"),
    [
        ({}, 4, ("gradients", 1, "synchronous", "paddle")),
        ({"algorithm": "async_sgd"}, 4, ("gradients", 1, "asynchronous", "paddle")),
        ({"algorithm": "async_sgd"}, 1, ("gradients", 1, "synchronous", "paddle")),
        ({N: 5}, 4, ("updates", 5, "synchronous", "paddle_changes")),
        ({N: 5, "algorithm": "async_sgd"}, 4, ("updates", 5, "asynchronous", "paddle_changes")),
        (ELASTIC, 4, ("weights", 5, "synchronous", "elastic")),
        ({**ELASTIC, "algorithm": "async_sgd"}, 4, ("weights", 5, "asynchronous", "elastic")),
    ],
)
def test_settings_are_plans(given, trainers, expected):
    plan = plan_of(settings(**given), [parameter("w")], trainers)
    assert (plan.send, plan.every, plan.meet, plan.rule.name) == expected


def test_trainers_and_center_pull_by_the_add_rate_over_the_trainers():
    assert plan_of(settings(**ELASTIC, delta_add_rate=2.0), [], 8).rule.option("alpha") == 0.25


def test_parameters_travel_by_name_with_what_is_theirs():
    own = [parameter("w", momentum=0.9, decay_rate=0.1), parameter("b"), parameter("still", is_static=True)]
    options = plan_of(settings(), own, 2).rule.options
    assert options["parameters"] == {"w": {"momentum": 0.9, "decay_rate": 0.1}, "b": {}}


def test_the_optimizer_counts_the_batches_of_all_trainers():
    assert optimizer_of(settings(), [parameter("w")], 4).get_config()["samples_per_step"] == 128


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ({}, False),
        ({"average_window": 0.5}, True),
        ({"own": {"num_batches_regularization": 3, "decay_rate": 0.1}}, True),
        ({"own": {"num_batches_regularization": 3, "momentum": 0.1}}, False),
        ({"learning_rate_schedule": "pass_manual", "learning_rate_args": "1:1"}, True),
        ({"learning_rate_schedule": "pass_manual", "learning_rate_args": "1:1", "learning_method": "adam"}, False),
    ],
)
def test_the_rows_of_a_pass_are_asked_for_where_something_depends_on_it(given, needs):
    own = [parameter("w", **given.get("own", {}))]
    opt = settings(**{name: value for name, value in given.items() if name != "own"})
    assert needs_samples_per_pass(opt, own) == needs
    if needs:
        with pytest.raises(PlanError, match="rows of a pass"):
            plan_of(opt, own, 2)
    assert plan_of(opt, own, 2, samples_per_pass=100).synchronous


def test_a_parameter_that_is_not_trained_is_not_looked_at():
    still = parameter("w", is_static=True, momentum=0.9, decay_rate_l1=0.1, num_batches_regularization=2)
    assert plan_of(settings(), [still], 2).rule.options["parameters"] == {}


def test_a_discard_ratio_of_at_most_one_is_replaced_and_said(caplog):
    with caplog.at_level(logging.WARNING):
        plan = plan_of(settings(algorithm="async_sgd", async_lagged_grad_discard_ratio=1.0), [], 2)
    assert plan.rule.options["settings"]["async_lagged_grad_discard_ratio"] == 1.5
    assert "async_lagged_grad_discard_ratio=1.0" in caplog.text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"algorithm": "owlqn"}, "'owlqn'.*decay_rate_l1"),
        ({"algorithm": "sdg"}, "Did you mean 'sgd'"),
        ({"learning_method": "adamx"}, "Did you mean 'adamax'"),
        ({"center_parameter_update_method": "elastic_average"}, "num_batches_per_send_parameter above 1"),
        ({"center_parameter_update_method": "mean"}, "'average', 'elastic_average'"),
        ({**ELASTIC, "average_window": 0.5, "max_average_window": 9}, "average_window.*an average already"),
        ({**ELASTIC, "delta_add_rate": 2.0}, "less than the number of trainers"),
        ({"num_batches_per_get_parameter": 2}, "num_batches_per_send_parameter"),
        ({"shrink_parameter_value": 0.1}, "decay_rate_l1"),
        ({N: 0}, "whole number of at least 1"),
        ({"max_average_window": 0}, "max_average_window"),
        ({"average_window": -1.0}, "average_window"),
    ],
)
def test_what_has_no_meaning_is_refused_with_what_has(given, says):
    with pytest.raises(PlanError, match=says):
        plan_of(settings(**given), [parameter("w")], 2)


@pytest.mark.parametrize(
    ("own", "more", "says"),
    [
        ({"momentum": 0.9, "decay_rate_l1": 0.1}, {}, "'w' must have momentum 0 with decay_rate_l1=0.1"),
        (
            {"momentum": 0.9, "num_batches_regularization": 2, "decay_rate": 0.1},
            {},
            "'w' must have momentum 0 with num_batches_regularization=2",
        ),
        (
            {"momentum": 0.9, "sparse_update": True, "decay_rate": 0.1},
            {},
            "'w' must have momentum 0 with sparse_update",
        ),
        (
            {"num_batches_regularization": 2, "decay_rate": 0.1},
            {N: 5},
            "must divide num_batches_per_send_parameter=5",
        ),
    ],
)
def test_attributes_that_do_not_go_together_are_refused_by_the_parameters_name(own, more, says):
    with pytest.raises(PlanError, match=says):
        plan_of(settings(**more), [parameter("w", **own)], 2)
