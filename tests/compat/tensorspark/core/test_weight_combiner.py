import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.compat.tensorspark.core.weight_combiner import (
    DeltaWeightCombiner,
    MeanWeightCombiner,
    UpdateMeanWeightCombiner,
    WeightCombiner,
)
from keraunos.errors import JobError

weights = st.lists(st.integers(-1000, 1000), min_size=3, max_size=3).map(np.array)


class Server:
    _version = 0


@given(weights, weights, st.integers(1, 50))
def test_the_mean_moves_one_part_of_the_way(shared, new, num):
    combined = MeanWeightCombiner(num).compute(shared, new)
    np.testing.assert_allclose(combined, shared + (new - shared) / num, atol=1e-9)


def test_the_mean_of_whole_numbers_is_not_rounded_down():
    assert MeanWeightCombiner(2).compute(np.array([1]), np.array([2])).tolist() == [1.5]


@pytest.mark.parametrize("num", [0, -1, "4", None, True])
def test_a_mean_needs_workers(num):
    with pytest.raises(JobError, match="`num` must be a number of workers"):
        MeanWeightCombiner(num)


@given(weights, weights, weights)
def test_the_first_update_takes_the_place_and_later_ones_meet_halfway(shared, first, second):
    combiner = UpdateMeanWeightCombiner()
    taken = combiner.compute(shared, first, name="a")
    assert taken.tolist() == first.tolist()
    assert combiner.compute(taken, second, name="a").tolist() == ((first + second) / 2).tolist()
    assert combiner.compute(shared, second, name="b").tolist() == second.tolist()


def test_a_server_that_counts_is_believed():
    server = Server()
    combiner = UpdateMeanWeightCombiner(server)
    assert combiner.compute(np.array([1.0]), np.array([3.0])).tolist() == [3.0]
    assert combiner.compute(np.array([1.0]), np.array([3.0])).tolist() == [3.0]
    server._version = 1
    assert combiner.compute(np.array([1.0]), np.array([3.0])).tolist() == [2.0]
    with pytest.raises(JobError, match="`server` must tell its version"):
        UpdateMeanWeightCombiner("localhost")


def test_the_old_librarys_example_of_a_delta():
    combiner = DeltaWeightCombiner()
    first = combiner.compute(np.array([0, 0, 0]), np.array([2, 2, 2]), worker_id="1", name="a")
    second = combiner.compute(first, np.array([3, 3, 2]), worker_id="2", name="a")
    third = combiner.compute(second, np.array([2, 4, 3]), worker_id="2", name="a")
    assert [each.tolist() for each in (first, second, third)] == [[2, 2, 2], [5, 5, 4], [2, 4, 3]]


def test_a_delta_is_counted_from_where_the_worker_began():
    combiner = DeltaWeightCombiner()
    assert combiner.compute(np.array([1.0]), np.array([1.5]), worker_id=0, name="a").tolist() == [1.5]


@given(weights, st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), weights)), max_size=30))
def test_every_workers_change_is_in_the_sum_once(first, events):
    """Workers pull and push in any order; the shared weight is what it was plus all that they changed."""
    combiner = DeltaWeightCombiner()
    shared = first
    held = {}
    for worker in range(3):
        held[worker] = first
        combiner.pulled(first, worker, "a")
    changed = np.zeros_like(first)
    for worker, change in events:
        if change is None:
            held[worker] = shared
            combiner.pulled(shared, worker, "a")
        else:
            shared = combiner.compute(shared, held[worker] + change, worker_id=worker, name="a")
            held[worker] = shared
            changed = changed + change
    assert shared.tolist() == (first + changed).tolist()


def test_a_delta_of_nobody_is_refused_and_a_reset_forgets():
    combiner = DeltaWeightCombiner()
    with pytest.raises(JobError, match="`worker_id` must say whose weights"):
        combiner.compute(np.array([0.0]), np.array([1.0]))
    combiner.compute(np.array([0.0]), np.array([1.0]), worker_id=0, name="a")
    combiner.reset_value()
    assert combiner.compute(np.array([7.0]), np.array([8.0]), worker_id=0, name="a").tolist() == [8.0]


def test_a_combiner_without_compute_says_so():
    class Silent(WeightCombiner):
        pass

    with pytest.raises(NotImplementedError, match="Silent does not say how weights are combined"):
        Silent().compute(np.array([0.0]), np.array([1.0]))
