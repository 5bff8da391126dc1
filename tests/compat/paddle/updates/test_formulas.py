"""Every learning method on a server, as an optimizer and in NumPy: the same numbers."""

import numpy as np
import pytest

from keraunos.compat.paddle.updates.formulas import METHODS, Attributes, Now, moved, slots_of
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
WHOLE_BATCHES = (8,) * len(ROWS)

ATTRIBUTES = {
    "plain": {},
    "momentum and decay": {
        "weight": {"momentum": 0.9, "decay_rate": 0.05, "learning_rate": 0.5},
        "bias": {"learning_rate": 2.0, "momentum": 0.5},
    },
    "clipping": {"weight": {"gradient_clipping_threshold": 0.3, "momentum": 0.9}, "out": {"learning_rate": 0.1}},
    "l1": {"weight": {"decay_rate_l1": 0.4}, "bias": {"decay_rate_l1": 0.2, "decay_rate": 0.3}},
    "every three batches": {
        "weight": {"num_batches_regularization": 3, "decay_rate": 0.2},
        "out": {"num_batches_regularization": 2, "decay_rate_l1": 0.1},
    },
}
SPARSE = {
    "weight": {"sparse_update": True, "momentum": 0.8},
    "out": {"sparse_remote_update": True, "momentum": 0.5, "learning_rate": 0.3},
    "bias": {"momentum": 0.9, "decay_rate": 0.1},
}


def test_all_nine_are_there():
    assert reference.METHODS == METHODS


@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
@pytest.mark.parametrize("method", METHODS)
def test_the_server_follows_the_formula_over_batches_of_several_sizes(method, attributes):
    opt = reference.settings(method, learning_rate_decay_a=0.05, learning_rate_decay_b=0.75)
    parameters = configured(**attributes)
    np.testing.assert_allclose(by_rule(opt, parameters)[:TRAINABLE], by_reference(opt, parameters), **close)


@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
@pytest.mark.parametrize("method", METHODS)
def test_the_optimizer_follows_the_formula(method, attributes):
    opt = reference.settings(method, learning_rate_decay_a=0.05, learning_rate_decay_b=0.75)
    parameters = configured(**attributes)
    expected = by_reference(opt, parameters, rows=WHOLE_BATCHES)
    np.testing.assert_allclose(by_optimizer(opt, parameters), expected, **close)


def test_sparse_momentum_is_what_paddles_sums_come_to():
    opt = reference.settings("sparse_momentum", learning_rate_decay_a=0.05, learning_rate_decay_b=0.75)
    parameters = configured(**SPARSE)
    np.testing.assert_allclose(by_rule(opt, parameters)[:TRAINABLE], by_reference(opt, parameters), **close)
    expected = by_reference(opt, parameters, rows=WHOLE_BATCHES)
    np.testing.assert_allclose(by_optimizer(opt, parameters), expected, **close)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_parameters_decay_behind_the_update_and_rows_begin_when_they_come(method):
    opt = reference.settings(method)
    parameters = configured(weight={"sparse_update": True, "decay_rate": 0.3}, out={"sparse_remote_update": True})
    np.testing.assert_allclose(by_rule(opt, parameters)[:TRAINABLE], by_reference(opt, parameters), **close)
    expected = by_reference(opt, parameters, rows=WHOLE_BATCHES)
    np.testing.assert_allclose(by_optimizer(opt, parameters), expected, **close)


@pytest.mark.parametrize("method", ["momentum", "rmsprop"])
def test_the_end_of_a_pass_settles_the_regularisation_that_is_owed(method):
    opt, parameters = reference.settings(method), configured(**ATTRIBUTES["every three batches"])
    expected = by_reference(opt, parameters, samples_per_pass=A_PASS)
    found = by_rule(opt, parameters, samples_per_pass=A_PASS)[:TRAINABLE]
    np.testing.assert_allclose(found, expected, **close)
    assert np.max(np.abs(found - by_rule(opt, parameters)[:TRAINABLE])) > 1e-3
    four_steps = {"samples_per_pass": 4 * 8}
    expected = by_reference(opt, parameters, rows=WHOLE_BATCHES, **four_steps)
    np.testing.assert_allclose(by_optimizer(opt, parameters, **four_steps), expected, **close)


@pytest.mark.parametrize("method", ["adam", "adamax"])
def test_adam_and_adamax_know_no_momentum_decay_or_schedule(method):
    bare = by_rule(reference.settings(method), configured())
    scheduled = reference.settings(
        method, learning_rate_schedule="exp", learning_rate_decay_a=0.1, learning_rate_decay_b=2
    )
    other = by_rule(scheduled, configured(weight={"momentum": 0.9, "decay_rate": 0.5}))
    np.testing.assert_array_equal(bare, other)


def test_l1_sets_weights_to_zero_that_the_gradient_does_not_hold():
    vector = by_rule(reference.settings(), configured(weight={"decay_rate_l1": 5.0}))
    free = by_rule(reference.settings(), configured())
    assert np.mean(vector[:20] == 0) > 0.3
    assert not np.any(free[:20] == 0)


def test_rmsprop_survives_gradients_that_hardly_vary():
    opt, gradient = reference.settings("rmsprop"), np.full(1, 3000.3, np.float32)
    value, slots = np.zeros(1, np.float32), dict.fromkeys(("squares", "mean"), np.zeros(1, np.float32))
    for batch in range(1, 400):
        now = Now(0.1, float(batch), float(batch == 1), float)
        value, slots, _ = moved(np, opt, Attributes(), now, value, gradient, slots)
    assert np.all(np.isfinite(value))


@pytest.mark.parametrize(("method", "slots"), [("momentum", 0), ("adagrad", 1), ("adadelta", 2), ("adam", 2)])
def test_nothing_is_remembered_that_is_not_needed(method, slots):
    assert len(slots_of(method, Attributes())) == slots
    assert len(slots_of(method, Attributes(momentum=0.9))) == slots + (method != "adam")
