"""The order of a search's trials, without Spark."""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from keraunos.errors import JobError, WorkerError
from keraunos.tuning.objective_search import ObjectiveTrial, Search
from keraunos.tuning.objective_task import Order, trial_for, trial_from_plain, trial_to_plain


@contextmanager
def threads(count):
    with ThreadPoolExecutor(count) as pool:
        yield pool.submit


def searched(run, *, trials=18, at_once=3, keep=None):
    import optuna

    order = functools.partial(Order, seed=5, backend="jax", floatx="float32")
    return Search(run, order, optuna.create_study(), trials, at_once, keep).on(threads)


def measured(order):
    trial = trial_for(order)
    x = trial.suggest_float("x", 0, 1)
    if x > 0.5:
        x += trial.suggest_categorical("more", [0, 1])
    loss = (x - 0.3) ** 2
    ended = ObjectiveTrial(order.number, trial.params, loss, 0.0, {}, bytes([order.number]))
    return ended, trial_from_plain(trial_to_plain(trial, loss))


def test_the_order_in_which_trials_end_changes_nothing():
    ended = [threading.Event() for _ in range(20)]
    finished = []

    def later_ones_first(order):
        result = measured(order)
        if order.number % 2 == 0 and order.number + 1 < 18:
            assert ended[order.number + 1].wait(60)
        finished.append(order.number)
        ended[order.number].set()
        return result

    known = []

    def one_by_one(order):
        known.append(len(order.history))
        return measured(order)

    plain = searched(one_by_one)
    turned = searched(later_ones_first)
    assert finished != sorted(finished)
    assert [each.params for each in plain.trials] == [each.params for each in turned.trials]
    assert [each.params for each in plain.study.trials] == [each.params for each in plain.trials]
    # A trial knows all but the last two before it, once that is enough to learn from.
    assert sorted(known) == [0] * 12 + list(range(10, 16))


def test_the_best_are_kept_with_their_models():
    found = searched(measured, keep=2)
    losses = sorted(each.loss for each in found.trials)
    assert [each.loss for each in found.best(3)] == losses[:3]
    assert [bool(each.archive) for each in found.best(18)] == [True] * 2 + [False] * 16
    assert [each.archive for each in found.best(2)] == [bytes([each.number]) for each in found.best(2)]


def test_failed_trials_are_never_the_best():
    def every_third_fails(order):
        ended, _ = measured(order)
        trial = trial_for(order)
        trial.suggest_float("x", 0, 1)
        if order.number % 3:
            return ended, trial_from_plain(trial_to_plain(trial, ended.loss))
        failed = ObjectiveTrial(order.number, {}, float("inf"), 0.0, {}, error="no luck")
        return failed, trial_from_plain(trial_to_plain(trial, None))

    found = searched(every_third_fails)
    assert len(found.best(18)) == 12
    assert found.study.best_value == found.best(1)[0].loss
    with pytest.raises(WorkerError, match="1 failed. The first: no luck"):
        searched(every_third_fails, trials=1)


def test_choices_that_no_json_can_hold():
    trial = trial_for(Order(0, 0, "jax", "float32"))
    with pytest.warns(UserWarning, match="Choices for a categorical distribution"):
        trial.suggest_categorical("kind", [int, float])
    with pytest.raises(JobError, match="`suggest_categorical` must be given None, booleans, numbers or strings"):
        trial_to_plain(trial, 1.0)
