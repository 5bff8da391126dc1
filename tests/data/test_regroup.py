import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.data.regroup import arrays_rows, regroup
from keraunos.errors import JobError


def blocks_of(sizes, named):
    start = 0
    for size in sizes:
        rows = np.arange(start, start + size)
        yield {"a": rows, "b": np.stack([rows, -rows], axis=1)} if named else rows
        start += size


@given(sizes=st.lists(st.integers(0, 30), max_size=8), batch_size=st.integers(1, 20), named=st.booleans())
def test_rows_keep_their_order_in_batches_of_one_size(sizes, batch_size, named):
    batches = list(regroup(blocks_of(sizes, named), batch_size))
    total = sum(sizes)
    counts = [arrays_rows(batch) for batch in batches]
    assert counts == [batch_size] * (total // batch_size) + ([total % batch_size] if total % batch_size else [])
    flat = [batch["a"] if named else batch for batch in batches]
    assert [value for part in flat for value in part.tolist()] == list(range(total))
    if named:
        assert all((batch["b"] == np.stack([batch["a"], -batch["a"]], axis=1)).all() for batch in batches)


def test_a_full_batch_is_given_before_the_next_block_is_read():
    read = []

    def blocks():
        for number in range(3):
            read.append(number)
            yield np.arange(4)

    batches = regroup(blocks(), 4)
    next(batches)
    assert read == [0]


def test_rows_are_copied_only_where_blocks_meet():
    first, second = np.arange(6), np.arange(6, 12)
    within, across, last = regroup([first, second], 4)
    assert np.shares_memory(within, first)
    assert not np.shares_memory(across, first)
    assert np.shares_memory(last, second)


def test_a_batch_has_at_least_one_row():
    with pytest.raises(JobError, match=r"`batchSize` must be a whole number of at least 1\. Received: 0\."):
        list(regroup([np.arange(3)], 0))
