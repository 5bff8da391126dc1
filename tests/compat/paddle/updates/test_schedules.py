"""Learning rates by samples: every schedule on a server and as an optimizer, against its formula."""

import numpy as np
import pytest

from keraunos.compat.paddle.updates import schedules
from keraunos.errors import PlanError
from tests.compat.paddle.updates import reference
from tests.compat.paddle.updates.training import (
    A_PASS,
    ROWS,
    TRAINABLE,
    by_optimizer,
    by_reference,
    by_rule,
    configured,
)

close = {"rtol": 2e-4, "atol": 2e-5}
A, B, ARGS = "learning_rate_decay_a", "learning_rate_decay_b", "learning_rate_args"

SCHEDULES = {
    "constant": {},
    "poly": {A: 0.1, B: 0.75},
    "caffe_poly": {A: 40.0, B: 2.0},
    "exp": {A: 0.5, B: 20.0},
    "discexp": {A: 0.5, B: 16.0},
    "linear": {A: 0.003, B: 0.02},
    "manual": {ARGS: "8:1.0,24:0.5,32:0.1"},
    "pass_manual": {ARGS: "0:1.0,1:0.3"},
}


def scheduled(name):
    return reference.settings(learning_rate_schedule=name, **SCHEDULES[name])


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_server_goes_by_the_rows_that_all_trainers_sent(name):
    opt, parameters = scheduled(name), configured(weight={"momentum": 0.9})
    expected = by_reference(opt, parameters, samples_per_pass=A_PASS)
    for trainers in (1, 3):
        found = by_rule(opt, parameters, trainers=trainers, samples_per_pass=A_PASS)[:TRAINABLE]
        np.testing.assert_allclose(found, expected, **close)


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_optimizer_goes_by_its_steps(name):
    opt, parameters = scheduled(name), configured(weight={"momentum": 0.9})
    expected = by_reference(opt, parameters, rows=(8,) * len(ROWS), samples_per_pass=24)
    np.testing.assert_allclose(by_optimizer(opt, parameters, samples_per_pass=24), expected, **close)


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "constant"])
def test_a_schedule_changes_what_is_learnt(name):
    changed = by_rule(scheduled(name), configured(), samples_per_pass=A_PASS)
    plain = by_rule(reference.settings(), configured())
    assert np.max(np.abs(changed - plain)[:TRAINABLE]) > 1e-3


@pytest.mark.parametrize(
    ("samples", "rate"), [(1, 1.0), (15_000_000 - 32, 1.0), (15_000_000, 0.5), (29_999_999, 0.5), (30_000_000, 0.25)]
)
def test_discexp_halves_the_rate_exactly_at_its_multiples(samples, rate):
    opt = reference.settings(learning_rate_schedule="discexp", **{A: 0.5, B: 15_000_000.0})
    assert schedules.rate_at(np, opt, 1.0, float(samples), 0) == rate


def test_caffe_poly_ends_at_nothing():
    opt = reference.settings(learning_rate_schedule="caffe_poly", **{A: 100.0, B: 0.0})
    assert [float(schedules.rate_at(np, opt, 1.0, t, 0)) for t in (50.0, 100.0, 101.0)] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"learning_rate_schedule": "polly"}, "Did you mean 'poly'"),
        ({"learning_rate_schedule": "manual"}, "n1:r1"),
        ({"learning_rate_schedule": "manual", ARGS: "5:1.0,3:0.5"}, "rising"),
        ({"learning_rate_schedule": "pass_manual", ARGS: "5=1.0"}, "n1:r1"),
        ({"learning_rate_schedule": "discexp", A: 0.5}, "decay_b"),
        ({"learning_rate_schedule": "caffe_poly"}, "decay_a"),
        ({ARGS: "5:1.0"}, "'manual'"),
    ],
)
def test_a_schedule_without_its_numbers_is_refused(given, says):
    with pytest.raises(PlanError, match=says):
        schedules.check_schedule(reference.settings(**given))
