"""Records of RDDs: every form gives the rows that the same values in a DataFrame would; wrong ones are told apart."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyspark.ml import linalg as ml
from pyspark.mllib import linalg as mllib
from pyspark.mllib.regression import LabeledPoint
from pyspark.sql import Row

from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.records import RowBlock, arrow_columns
from keraunos.data.sparse_rows import SparseRows, as_dense
from keraunos.errors import DataError
from keraunos.job.columns import Slot

NUMBERS = ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32"]


def blocks(records, names=("x", "y"), **options):
    """What a worker would keep of the records, a block a column, for each chunk."""
    reader = ArrowReader([Slot(name, (name,)) for name in names], **options)
    return [reader.read(batch) for batch in arrow_columns(records, names)]


def read(records, names=("x", "y"), **options):
    chunks = [[as_dense(block) for block in chunk] for chunk in blocks(records, names, **options)]
    return [np.concatenate(column) for column in zip(*chunks, strict=True)]


def error_of(records, names=("x", "y")):
    with pytest.raises(DataError) as caught:
        read(records, names)
    return str(caught.value)


@given(
    count=st.integers(1, 200),
    dtype=st.sampled_from(NUMBERS),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4),
)
def test_arrays_come_out_bit_for_bit_in_their_own_type(count, dtype, shape):
    values = np.random.default_rng(count).integers(0, 2, size=(count, *shape)).astype(dtype)
    x, y = read(list(zip(values, np.arange(count), strict=True)))
    assert x.dtype == dtype
    np.testing.assert_array_equal(x, values)
    np.testing.assert_array_equal(y, np.arange(count))


@pytest.mark.parametrize("floatx", ["float16", "float32", "float64"])
def test_float64_and_python_floats_become_the_models_float(floatx):
    records = [(np.array([0.1, 0.2]), 0.5), ([0.3, 0.4], 2)]
    x, y = read(records, floatx=floatx)
    assert x.dtype == y.dtype == floatx
    np.testing.assert_array_equal(x, np.array([[0.1, 0.2], [0.3, 0.4]]).astype(floatx))


@pytest.mark.parametrize("kind", [">f4", ">i2", "longdouble"])
def test_types_of_other_machines_are_read(kind):
    values = np.arange(6).reshape(3, 2).astype(kind)
    (x,) = read(list(values), ["x"])
    np.testing.assert_array_equal(x, values)


X, Y = np.array([1.0, 0.0, 2.0], dtype="float32"), 1.0
FORMS = {
    "tuple": (X, Y),
    "list": [X, Y],
    "lists": ([1.0, 0.0, 2.0], 1.0),
    "dict": {"y": Y, "more": "unread", "x": X},
    "row by name": Row(y=Y, x=X),
    "row by position": Row(a=X, b=Y),
    "ml vector": (ml.Vectors.dense(X), Y),
    "sparse ml vector": (ml.Vectors.sparse(3, [0, 2], [1.0, 2.0]), Y),
    "mllib labeled point": LabeledPoint(Y, mllib.Vectors.dense(X)),
    "sparse labeled point": LabeledPoint(Y, mllib.Vectors.sparse(3, {0: 1.0, 2: 2.0})),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_record_gives_the_same_row(form):
    x, y = read([FORMS[form]])
    np.testing.assert_array_equal(x, [X])
    np.testing.assert_array_equal(y, [Y])


@given(st.lists(st.sampled_from(list(FORMS.values())), min_size=1, max_size=150))
def test_forms_may_be_mixed(records):
    x, y = read(records)
    np.testing.assert_array_equal(x, [X] * len(records))
    np.testing.assert_array_equal(y, [Y] * len(records))


@pytest.mark.parametrize("record", [X, (X,), [X], {"x": X}, ml.Vectors.dense(X)])
def test_a_job_of_one_column_takes_the_entry_alone(record):
    (x,) = read([record] * 3, ["x"])
    np.testing.assert_array_equal(x, [X] * 3)


def test_sparse_vectors_stay_sparse():
    vectors = [ml.Vectors.sparse(1000, [at], [1.0]) for at in range(100)]
    assert all(isinstance(x, SparseRows) for (x,) in blocks(vectors, ["x"]))
    np.testing.assert_array_equal(read(vectors, ["x"])[0], np.eye(100, 1000))


def test_records_are_read_as_they_come_and_in_chunks_of_bounded_size():
    large = np.zeros(1 << 20, dtype=np.uint8)
    taken = itertools.count()
    stream = arrow_columns(((large, next(taken)) for _ in range(200)), ["x", "y"])
    sizes = [len(batch["x"]) for batch in stream]
    assert sum(sizes) == 200
    assert max(sizes[1:]) <= 4


def many(*last):
    """A hundred good records, so that the odd one is not in the first chunk, and then the others."""
    return [(X, 1)] * 100 + list(last)


WRONG = {
    "ragged": (many((X, 1), (X[:2], 1)), r"'x'.*an entry of shape \(2,\).*shape \(3,\).*in record 101"),
    "ragged chunk": ([(X, 1)] * 64 + [(X[:2], 1)], r"'x'.*an entry of shape \(2,\).*shape \(3,\).*in record 64"),
    "ragged list": (many(([[1.0], [1.0, 2.0]], 1)), r"'x'.*a ragged list.*in record 100"),
    "none": (many((X, None)), r"'y' of the RDD holds None.*a value in every record.*Received: None in record 100"),
    "none inside": (many(([1.0, None, 2.0], 1)), r"'x' of the RDD holds None.*\[1.0, None, 2.0\] in record 100"),
    "text": (many((X, "one")), r"'y' of the RDD holds a str.*a number.*Received: 'one' in record 100"),
    "fractions after whole numbers": (many((X, 0.5)), r"'y' of the RDD holds float64. Expected int64.*record 100"),
    "one number too large": ([(X, 1 << 70)], r"'y'.*a number.*in record 0"),
    "empty": ([(X[:0], 1)], r"'x'.*an empty array"),
    "too few entries": (many((X,)), r"has 1 entries. Expected 2 entries, one for each of 'x', 'y'.*in record 100"),
    "too many entries": ([(X, 1, 2)], r"has 3 entries. Expected 2 entries"),
    "no tuple": ([X], r"is one ndarray. Expected 2 entries"),
    "name missing": (many({"x": X}), r"lacks 'y'.*in record 100"),
    "nan": (many((X * np.nan, 1)), r"'x' holds NaN.*in row 100"),
    "sparse of another size": (
        [(ml.Vectors.sparse(3, [], []), 1), (ml.Vectors.sparse(4, [], []), 1)],
        r"'x' is ragged.*size 3.*size 4 in row 1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_record_is_told_with_its_column_number_and_content(case):
    records, message = WRONG[case]
    assert re.search(message, error_of(records))


def test_numbers_that_fit_the_first_type_are_taken():
    (x,) = read([np.int16(3)] * 100 + [7, 8.0], ["x"])
    assert x.dtype == "int16"
    np.testing.assert_array_equal(x[-2:], [7, 8])
    assert re.search("int64. Expected int16.* 70000 in record 100", error_of([np.int16(3)] * 100 + [70_000], ["x"]))


@given(
    rows=st.integers(1, 300),
    width=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 300), max_size=3),
)
def test_blocks_of_rows_read_like_the_rows_themselves(rows, width, cuts):
    x = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
    y = np.arange(rows)
    bounds = [0, *sorted(min(cut, rows) for cut in cuts), rows]
    whole = [RowBlock([x[a:b], y[a:b]]) for a, b in itertools.pairwise(bounds)]
    for one, other in zip(read(whole), read(zip(x, y, strict=True)), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
