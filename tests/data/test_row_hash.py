import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.data.row_hash import RowHasher, canonical_order
from keraunos.data.sparse_rows import SparseRows


def distinct(hashes):
    return len(np.unique(hashes, axis=0))


def naive(slot_keys, words):
    return [
        sum(int(word) * int(key) for word, key in zip(words, column, strict=True)) % 2**64 for column in slot_keys.T
    ]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "int32", "float32", "int64", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (2, 3)])
def test_rows_hash_alike_only_where_they_are_alike(dtype, shape):
    rows = np.random.default_rng(0).integers(0, 2, size=(200, *shape)).astype(dtype)
    hashes = RowHasher().hash([rows])
    assert hashes.shape == (200, 2)
    assert distinct(hashes) == len(np.unique(rows.reshape(200, -1), axis=0))


def test_each_word_is_a_dot_product_modulo_two_to_the_64():
    rows = np.random.default_rng(0).integers(0, 2**32, size=(5, 7), dtype=np.uint32)
    keys = np.stack([RowHasher().hash([row[None]])[0] for row in np.eye(7, dtype=np.uint32)])
    expected = [naive(keys, row) for row in rows]
    assert RowHasher().hash([rows]).tolist() == expected


def test_floats_of_few_bits_do_not_collide():
    # All but the top bits of these are zero, which a product modulo 2**64 of wider words would lose.
    random = np.random.default_rng(0)
    rows = random.choice(np.array([0.0, 1.0, -1.0, 2.0, -0.5], dtype=np.float64), size=(100_000, 64))
    assert distinct(RowHasher().hash([rows])) == len(rows)
    assert distinct(RowHasher().hash([rows.astype(np.float32)])) == len(rows)


def test_signs_alone_tell_rows_apart():
    signs = np.array([[s0, s1, s2] for s0 in (0.0, -0.0) for s1 in (0.0, -0.0) for s2 in (0.0, -0.0)])
    assert distinct(RowHasher().hash([signs])) == 8


def test_the_same_value_in_another_slot_is_another_row():
    one, zero = np.ones(1), np.zeros(1)
    assert RowHasher().hash([one, zero]).tolist() != RowHasher().hash([zero, one]).tolist()


@given(
    rows=hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        st.tuples(st.integers(1, 8), st.integers(1, 8)),
        elements=st.sampled_from([0.0, 1.0, -2.5]),
    )
)
def test_sparse_rows_hash_as_dense_ones(rows):
    row, column = np.nonzero(rows)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(rows, axis=1))])
    sparse = SparseRows(indptr, column.astype(np.int32), rows[row, column], rows.shape[1])
    np.testing.assert_array_equal(RowHasher().hash([sparse]), RowHasher().hash([rows]))


def test_very_wide_sparse_rows_hash_as_narrow_ones_do():
    hashes = []
    for width in (1000, 1 << 30):
        sparse = SparseRows(np.array([0, 2, 3]), np.array([3, 999]).take([0, 1, 0]), np.array([1.0, 2.0, 3.0]), width)
        hashes.append(RowHasher().hash([sparse]).tolist())
    assert hashes[0] == hashes[1]


def test_the_order_uses_the_second_word_where_the_first_is_equal():
    hashes = np.array([[2, 0], [1, 9], [1, 3], [0, 5]], dtype=np.uint64)
    assert canonical_order(hashes).tolist() == [3, 2, 1, 0]
