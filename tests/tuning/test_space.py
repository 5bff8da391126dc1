import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL
from keraunos.errors import JobError
from keraunos.tuning.space import LogUniform, Uniform, candidates, name_of


def test_a_grid_has_every_combination():
    found = candidates({"iters": [1, 2], "tfOptimizer": ["adam", "ftrl"]})
    assert found == [{"iters": i, "tfOptimizer": name} for i in (1, 2) for name in ("adam", "ftrl")]


def test_params_and_param_maps_are_taken_as_they_are():
    estimator = SparkAsyncDL()
    maps = [{estimator.iters: 3}, {estimator.iters: 4, estimator.port: 5001}]
    assert candidates(maps) == maps
    assert [name_of(key) for key in maps[1]] == ["iters", "port"]
    assert candidates({estimator.iters: [3, 4]}) == [{estimator.iters: 3}, {estimator.iters: 4}]


@given(st.integers(1, 30), st.integers(0, 100))
def test_random_choices_are_different_ones_of_the_grid_and_follow_from_the_seed(trials, seed):
    space = {"a": list(range(4)), "b": list(range(5))}
    found = candidates(space, trials=trials, seed=seed)
    assert len(found) == min(trials, 20)
    assert len({tuple(each.items()) for each in found}) == len(found)
    assert found == candidates(space, trials=trials, seed=seed)


@given(st.integers(0, 1000))
def test_draws_lie_within_their_bounds(seed):
    space = {"rate": LogUniform(1e-4, 1e-1), "size": Uniform(3, 9, whole=True), "drop": Uniform(0.1, 0.2), "a": ["b"]}
    (found,) = candidates(space, trials=1, seed=seed)
    assert 1e-4 <= found["rate"] <= 1e-1
    assert found["size"] in range(3, 10)
    assert 0.1 <= found["drop"] <= 0.2
    assert found["a"] == "b"


def test_small_rates_are_drawn_as_often_as_large_ones():
    drawn = [each["rate"] for each in candidates({"rate": LogUniform(1e-4, 1e-2)}, trials=400)]
    assert 140 < sum(rate < 1e-3 for rate in drawn) < 260


@pytest.mark.parametrize(
    ("space", "trials", "message"),
    [
        ([], None, "`space` must be a list of param maps"),
        ("grid", None, "`space` must be a list of param maps"),
        ({"a": 3}, None, r"`space\['a'\]` must be a list of values"),
        ({"a": []}, None, r"`space\['a'\]` must be a list of values"),
        ({"a": Uniform(0, 1)}, None, "`trials` must say how many"),
        ({"a": [1]}, 0, "`trials` must be a whole number of at least 1"),
    ],
)
def test_a_space_that_is_none(space, trials, message):
    with pytest.raises(JobError, match=message):
        candidates(space, trials=trials)


@pytest.mark.parametrize(("kind", "low", "high"), [(Uniform, 2, 1), (LogUniform, 0, 1), (LogUniform, 3, 2)])
def test_bounds_that_are_none(kind, low, high):
    with pytest.raises(JobError, match="must be given a low and a higher number"):
        kind(low, high)
