import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.data.storage import Spool


@given(
    sizes=st.lists(st.integers(0, 50), max_size=8),
    shape=st.sampled_from([(), (3,), (2, 2), (0,)]),
    budget=st.sampled_from([0, 500, 1 << 30]),
)
def test_a_store_gives_back_what_was_appended(sizes, shape, budget):
    blocks = [np.random.default_rng(size).random((size, *shape)) for size in sizes]
    with Spool(budget) as spool:
        first, second = spool.store(shape, np.float64), spool.store((), np.int32)
        for block in blocks:
            first.append(block)
            second.append(np.arange(len(block), dtype=np.int32))
        arrays = first.finish(), second.finish()
    np.testing.assert_array_equal(arrays[0], np.concatenate([np.empty((0, *shape)), *blocks]))
    assert arrays[1].tolist() == [value for size in sizes for value in range(size)]
    assert arrays[0].flags.c_contiguous


@pytest.mark.parametrize("budget", [1 << 30, 3_000_000])
def test_rows_of_many_segments_become_one_array(budget):
    rows = np.arange(1_000_000, dtype=np.int64)
    with Spool(budget) as spool:
        store = spool.store((), np.int64)
        for start in range(0, len(rows), 30_001):
            store.append(rows[start : start + 30_001])
        assert spool.spilled == (budget < rows.nbytes)
        np.testing.assert_array_equal(store.finish(), rows)


def test_finished_arrays_outlive_the_spool(tmp_path):
    with Spool(0, str(tmp_path)) as spool:
        store = spool.store((2,), np.float32)
        store.append(np.ones((3, 2), dtype=np.float32))
        array = store.finish()
    assert array.tolist() == [[1.0, 1.0]] * 3
