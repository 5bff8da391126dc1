"""Distributions mean what Hyperopt means by them."""

import inspect
import math
from statistics import NormalDist

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.elephas.hyper_draws import DISTRIBUTIONS, Draws
from keraunos.compat.elephas.hyperas import distributions
from keraunos.errors import JobError

bounds = st.tuples(st.floats(-5, 5), st.floats(-5, 5)).filter(lambda both: both[1] - both[0] > 0.1).map(sorted)
steps = st.sampled_from([0.25, 1, 2, 16])
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def _quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def random_draws(seed):
    return Draws(optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask())


@given(seeds, bounds, steps)
def test_uniform_ones_lie_within_their_bounds(seed, both, q):
    low, high = both
    draws = random_draws(seed)
    assert low <= draws.uniform("a", low, high) <= high
    assert math.exp(low) * 0.999 <= draws.loguniform("b", low, high) <= math.exp(high) * 1.001
    stepped, log_stepped = draws.quniform("c", low, high, q), draws.qloguniform("d", low, high, q)
    assert stepped % q == 0
    assert log_stepped % q == 0
    assert low - q / 2 <= stepped <= high + q / 2
    assert math.exp(low) * 0.999 - q / 2 <= log_stepped <= math.exp(high) * 1.001 + q / 2
    assert set(draws.values) == set("abcd")
    assert all(isinstance(each, float) for each in draws.values.values())


@given(st.floats(0.001, 0.999), st.floats(-3, 3), st.floats(0.1, 2), steps)
def test_normal_ones_are_the_quantiles_of_what_optuna_draws(share, mu, sigma, q):
    draws = Draws(optuna.trial.FixedTrial(dict.fromkeys("abcd", share)))
    expected = NormalDist(mu, sigma).inv_cdf(share)
    assert draws.normal("a", mu, sigma) == expected
    assert draws.lognormal("b", mu, sigma) == math.exp(expected)
    assert draws.qnormal("c", mu, sigma, q) == round(expected / q) * q
    assert draws.qlognormal("d", mu, sigma, q) == round(math.exp(expected) / q) * q


@given(seeds, st.integers(1, 9), st.integers(-9, 9))
def test_whole_numbers_end_before_the_last(seed, count, low):
    draws = random_draws(seed)
    assert draws.randint("a", count) in range(count)
    assert draws.randint("b", low, low + count) in range(low, low + count)


# Products of subnormal numbers, with which the expectation is computed here, have no precision left.
@given(st.floats(0.001, 0.999), st.lists(st.floats(0, 5, allow_subnormal=False), min_size=1, max_size=5).filter(any))
def test_probable_choices_are_chosen_as_often_as_is_said(share, chances):
    chosen = Draws(optuna.trial.FixedTrial({"a": share})).pchoice("a", [(each, f"{each}") for each in chances])
    number = next(at for at in range(len(chances)) if sum(chances[: at + 1]) > share * sum(chances) * (1 - 1e-9))
    assert chosen in {f"{chances[number]}", *(f"{each}" for each in chances[number + 1 : number + 2])}
    assert float(chosen) > 0


@given(seeds, st.lists(st.one_of(st.integers(), st.text(), st.none(), st.tuples()), min_size=1))
def test_a_choice_is_one_of_the_options(seed, options):
    draws = random_draws(seed)
    chosen = draws.choice("a", options)
    assert chosen in options
    assert draws.choice("a", options) == chosen


def test_the_names_that_programs_import_are_those_that_can_be_drawn():
    functions = {
        name: each for name, each in vars(distributions).items() if inspect.isfunction(each) and name[0] != "_"
    }
    assert sorted(functions) == sorted(DISTRIBUTIONS)
    for name, function in functions.items():
        taken = [each for each in inspect.signature(getattr(Draws, name)).parameters if each not in {"self", "name"}]
        assert list(inspect.signature(function).parameters) == taken
        with pytest.raises(JobError, match=rf"`{name}` must stand in a template, `{{{{{name}\(\.\.\.\)}}}}`"):
            function(*range(len(taken)))
