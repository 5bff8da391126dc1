import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.sparse_rows import SparseRows, as_dense
from keraunos.errors import ColumnError, DataError
from keraunos.job.columns import Slot

VECTOR = pa.struct(
    [
        ("type", pa.int8()),
        ("size", pa.int32()),
        ("indices", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
    ]
)


def dense(*values):
    return {"type": 1, "size": None, "indices": None, "values": list(values)}


def sparse(size, entries):
    return {"type": 0, "size": size, "indices": list(entries), "values": list(entries.values())}


def slots(columns):
    return Slot.all_from(columns, "featuresCol")


def read(array, **options):
    (block,) = ArrowReader(slots("x"), **options).read({"x": array})
    return block


def lists(array, kind="list"):
    """A nested Arrow array of a numpy one, built level by level."""
    flat = pa.array(array.reshape(-1))
    for depth in range(array.ndim - 1, 0, -1):
        outer, length = int(np.prod(array.shape[:depth])), array.shape[depth]
        if kind == "fixed":
            flat = pa.FixedSizeListArray.from_arrays(flat, length)
            continue
        index = np.int64 if kind == "large" else np.int32
        offsets = pa.array(np.arange(outer + 1, dtype=index) * index(length))
        flat = (pa.LargeListArray if kind == "large" else pa.ListArray).from_arrays(offsets, flat)
    return flat


@pytest.mark.parametrize(
    ("arrow", "numpy"),
    [
        *((name, name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
        ("float16", "float16"),
        ("float32", "float32"),
        ("float64", "float32"),
    ],
)
def test_numbers_keep_their_type_and_doubles_become_the_float_type(arrow, numpy):
    block = read(pa.array(np.array([0, 1, 100], dtype=arrow)))
    assert block.dtype == numpy
    assert block.tolist() == [0, 1, 100]


def test_doubles_stay_doubles_where_the_model_computes_in_them():
    assert read(pa.array([0.1]), floatx="float64")[0] == 0.1


def test_booleans_stay_booleans_also_in_a_slice():
    block = read(pa.array([True, False, False, True, True]).slice(1, 3))
    assert block.dtype == np.bool_
    assert block.tolist() == [False, False, True]


@pytest.mark.parametrize("arrow_type", [pa.decimal128(10, 2), pa.decimal256(40, 2)])
def test_decimals_become_floats(arrow_type):
    block = read(pa.array([Decimal("1.25"), Decimal("-3.50")], type=arrow_type))
    assert block.dtype == np.float32
    assert block.tolist() == [1.25, -3.5]


@given(
    array=st.sampled_from(["float32", "int32", "uint8", "bool"]).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    ),
    kind=st.sampled_from(["list", "large", "fixed"]),
    data=st.data(),
)
def test_nested_arrays_equal_what_python_lists_give(array, kind, data):
    arrow = lists(array, kind)
    start = data.draw(st.integers(0, len(array)))
    part = arrow.slice(start)
    block = read(part, allow_nan=True)
    expected = np.array(part.to_pylist(), dtype=array.dtype)
    assert block.dtype == array.dtype
    if len(part):
        np.testing.assert_array_equal(block, expected)
    else:
        assert len(block) == 0


VALUES = st.floats(-1e6, 1e6, width=32)


@st.composite
def vectors(draw):
    """Rows of dense and sparse vectors of one width, and the same rows one by one in numpy."""
    width = draw(st.integers(1, 6))
    rows, expected = [], []
    for _ in range(draw(st.integers(1, 12))):
        row = np.zeros(width, dtype=np.float32)
        if draw(st.booleans()):
            row[:] = draw(st.lists(VALUES, min_size=width, max_size=width))
            rows.append(dense(*map(float, row)))
        else:
            entries = draw(st.dictionaries(st.integers(0, width - 1), VALUES))
            entries = dict(sorted(entries.items()))
            for index, value in entries.items():
                row[index] = value
            rows.append(sparse(width, entries))
        expected.append(row)
    return rows, np.stack(expected)


@given(case=vectors(), start=st.integers(0, 3))
def test_vectors_dense_sparse_and_mixed_equal_what_each_row_says(case, start):
    rows, expected = case
    start = min(start, len(rows) - 1)
    block = as_dense(read(pa.array(rows, type=VECTOR).slice(start)))
    assert block.dtype == np.float32
    assert block.tobytes() == expected[start:].tobytes()


def test_sparse_vectors_stay_sparse():
    block = read(pa.array([sparse(1000, {3: 1.5}), sparse(1000, {}), sparse(1000, {0: 2.0, 999: 3.0})], type=VECTOR))
    assert isinstance(block, SparseRows)
    assert (block.width, block.indptr.tolist()) == (1000, [0, 1, 1, 3])
    assert block.indices.tolist() == [3, 0, 999]
    assert block.take(np.array([2, 0]))[:, [0, 3, 999]].tolist() == [[2.0, 0.0, 3.0], [0.0, 1.5, 0.0]]


def test_a_list_of_columns_is_stacked_in_its_order():
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": pa.array([3, 4]), "c": pa.array([True, False])})
    (block,) = ArrowReader(slots(["b", "a", "c"])).read(batch)
    assert block.dtype == np.int64
    assert block.tolist() == [[3, 1, 1], [4, 2, 0]]


@pytest.mark.parametrize(
    "column",
    [pa.array([0.5, 1.5]), pa.array([0.5, 1.5], type=pa.float32()), pa.array([Decimal("0.5"), Decimal("1.5")])],
)
def test_a_list_of_columns_with_one_float_is_of_the_float_type(column):
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": column})
    (block,) = ArrowReader(slots(["a", "b"])).read(batch)
    assert block.dtype == np.float32
    assert block.tolist() == [[1.0, 0.5], [2.0, 1.5]]


def test_slots_by_name_each_give_a_block():
    batch = pa.record_batch({"a": pa.array([1]), "b": pa.array([[1.0, 2.0]])})
    first, second = ArrowReader(slots({"left": "b", "right": ["a"]})).read(batch)
    assert (first.tolist(), second.tolist()) == ([[1.0, 2.0]], [[1]])


def message(kind, array, columns="x", **options):
    with pytest.raises(kind) as raised:
        ArrowReader(slots(columns), **options).read({"x": array, "y": array})
    return str(raised.value)


def test_a_null_names_column_and_row():
    assert message(DataError, pa.array([1.0, 2.0, None])) == (
        "Column 'x' holds a null; expected a value in every row. Received: None in row 2. "
        "Drop such rows, as with df.na.drop(subset=['x']), or fill them."
    )


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1.0, 2.0], [3.0, None]]),
        pa.array([[[1.0], [2.0]], [[3.0], [None]]]),
        pa.array([[[1.0], [2.0]], [[3.0], None]]),
        pa.array([[1.0, 2.0], [3.0, None]], type=pa.list_(pa.float64(), 2)),
        pa.array([dense(1.0, 2.0), dense(1.0, None)], type=VECTOR),
    ],
    ids=["array", "nested", "nested list", "fixed", "vector"],
)
def test_a_null_inside_an_array_is_found(array):
    text = message(DataError, array)
    assert text.startswith("Column 'x' holds an array with a null inside; expected a value in every row. Received: ")
    assert "None" in text
    assert "in row 1." in text


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.0, float("nan")]),
        pa.array([[1.0, 2.0], [3.0, float("nan")]]),
        pa.array([dense(1.0, 2.0), dense(float("nan"), 0.0)], type=VECTOR),
        pa.array([sparse(9, {}), sparse(9, {1: float("nan")})], type=VECTOR),
    ],
    ids=["scalar", "array", "dense", "sparse"],
)
def test_nan_is_refused_unless_allowed(array):
    text = message(DataError, array)
    assert text.startswith("Column 'x' holds NaN; expected a finite number everywhere. Received: nan ")
    assert "in row 1." in text
    assert np.isnan(as_dense(read(array, allow_nan=True))).sum() == 1


def test_nan_in_a_list_of_columns_names_the_right_one():
    batch = pa.record_batch({"a": pa.array([1.0, 2.0]), "b": pa.array([3.0, float("nan")])})
    with pytest.raises(
        DataError, match=re.escape("Column 'b' holds NaN; expected a finite number everywhere. Received: nan")
    ):
        ArrowReader(slots(["a", "b"])).read(batch)


INFINITE = float("inf")


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.0, -INFINITE]),
        pa.array([[1.0, 2.0], [3.0, -INFINITE]]),
        pa.array([dense(1.0, 2.0), dense(-INFINITE, 0.0)], type=VECTOR),
        pa.array([sparse(9, {}), sparse(9, {1: 0.5, 2: -INFINITE})], type=VECTOR),
    ],
    ids=["scalar", "array", "dense", "sparse"],
)
def test_an_infinite_value_is_refused_unless_it_is_allowed(array):
    text = message(DataError, array)
    assert text.startswith("Column 'x' holds an infinite value; expected a finite number everywhere. Received: -inf ")
    assert "in row 1." in text
    assert "allowNaN=True" in text
    assert np.isinf(as_dense(read(array, allow_nan=True))).sum() == 1


def test_a_value_that_float32_has_no_place_for_is_infinite():
    text = message(DataError, pa.array([[0.5] * 40, [0.5] * 39 + [1e300]]))
    assert text.startswith("Column 'x' holds a value that is infinite as float32; expected a finite number")
    assert "Received: 1e+300 in [0.5, " in text
    assert read(pa.array([1e300]), floatx="float64").tolist() == [1e300]
    with pytest.raises(DataError, match="infinite as float16.*Received: 100000.0 in row 0"):
        read(pa.array([1e5]), floatx="float16")


def test_large_values_whose_sum_is_infinite_are_numbers():
    assert read(pa.array([3e38, 3e38], type=pa.float32())).tolist() == pytest.approx([3e38, 3e38])


def test_an_infinite_value_in_a_list_of_columns_names_the_right_one():
    batch = pa.record_batch({"a": pa.array([1.0, 2.0]), "b": pa.array([3.0, 1e39])})
    with pytest.raises(DataError, match=re.escape("Column 'b' holds a value that is infinite as float32")):
        ArrowReader(slots(["a", "b"])).read(batch)


def test_a_ragged_array_names_column_row_and_lengths():
    assert message(DataError, pa.array([[1, 2], [3, 4], [5]])) == (
        "Column 'x' is ragged: all rows must have one shape. Expected length 2, as in the first row. "
        "Received: length 1 in row 2: [5]. Set pad=True to fill shorter rows with zeros (maxLength cuts longer ones), "
        "or use one shape."
    )


def test_a_ragged_inner_array_names_its_depth():
    text = message(DataError, pa.array([[[1], [2]], [[3], [4, 5]]]))
    assert "Received: length 2 at depth 2 in row 1: [[3], [4, 5]]." in text


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (
            pa.array([[1, 2], [3, 4]]),
            pa.array([[5, 6, 7]]),
            "Expected length 2, as in the first row. Received: length 3 in row 2",
        ),
        (
            pa.array([sparse(4, {0: 1.0})], type=VECTOR),
            pa.array([dense(1.0, 2.0)], type=VECTOR),
            "Expected size 4, as in the first row. Received: size 2 in row 1",
        ),
    ],
)
def test_a_later_batch_of_another_shape_is_ragged(first, second, found):
    reader = ArrowReader(slots("x"))
    reader.read({"x": first})
    with pytest.raises(DataError, match=re.escape(found)):
        reader.read({"x": second})


def test_an_empty_batch_sets_no_shape():
    reader = ArrowReader(slots("x"))
    empty = pa.array([], type=pa.list_(pa.int64()))
    assert len(reader.read({"x": empty})[0]) == 0
    assert reader.read({"x": pa.array([[1, 2]])})[0].tolist() == [[1, 2]]
    assert reader.read({"x": empty})[0].shape == (0, 2)


def test_vectors_of_different_sizes_are_ragged():
    text = message(DataError, pa.array([dense(1.0, 2.0), sparse(3, {0: 1.0})], type=VECTOR))
    assert "Expected size 2, as in the first row. Received: size 3 in row 1: {'type': 0, 'size': 3," in text


@pytest.mark.parametrize(
    "bad",
    [
        {"type": 0, "size": 3, "indices": [3], "values": [1.0]},
        {"type": 0, "size": 3, "indices": [-1], "values": [1.0]},
        {"type": 0, "size": 3, "indices": [0, 1], "values": [1.0]},
    ],
)
def test_a_malformed_sparse_vector_is_refused(bad):
    text = message(DataError, pa.array([sparse(3, {0: 1.0}), bad], type=VECTOR))
    assert text.startswith("Column 'x' holds a malformed sparse vector; expected one index below 3 for each value.")
    assert "in row 1." in text


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a"]),
        pa.array([b"a"]),
        pa.array([["a"]]),
        pa.array([{"a": 1}]),
        pa.array([[(1, 2)]], type=pa.map_(pa.int32(), pa.int32())),
        pa.array([0], type=pa.timestamp("us")),
        pa.array([None]),
        pa.array([[dense(1.0)]], type=pa.list_(VECTOR)),
    ],
    ids=lambda array: str(array.type),
)
def test_a_type_that_no_model_takes_is_refused(array):
    assert message(ColumnError, array) == (
        "Column 'x' has a type that no model input takes. Expected a number, a boolean, a decimal, an array of these, "
        f"or a vector. Received: {array.type}. Cast or encode the column first, or leave it out."
    )


@pytest.mark.parametrize("array", [pa.array([[1.0]]), pa.array([dense(1.0)], type=VECTOR)], ids=["array", "vector"])
def test_a_list_of_columns_takes_single_numbers_only(array):
    text = message(ColumnError, array, columns=["x", "y"])
    assert text.startswith("Column 'x' is one of a list of columns, which must hold single numbers. Received: ")


def test_a_missing_column_is_named():
    text = message(ColumnError, pa.array([1]), columns="z")
    assert text == "Column 'z' is missing. Expected it in every batch. Received: ['x', 'y']."


def test_a_long_row_is_shortened_in_the_message():
    text = message(DataError, pa.array([[0.0] * 500, [0.0] * 499]))
    assert len(text) < 400


def test_serving_leaves_out_rows_with_nulls_and_marks_them():
    batch = pa.record_batch(
        {
            "a": pa.array([[1.0, 2.0], None, [3.0, None], [4.0, 5.0], [float("nan"), 6.0]]),
            "b": pa.array([1, 2, 3, None, 5]),
        }
    )
    inputs, nulls = ArrowReader(slots({"left": "a", "right": "b"}), allow_nan=True).serve(batch)
    assert nulls.tolist() == [False, True, True, True, False]
    np.testing.assert_array_equal(inputs["left"], np.array([[1, 2], [np.nan, 6]], dtype=np.float32))
    assert inputs["right"].tolist() == [1, 5]


def test_serving_leaves_out_rows_that_are_not_finite():
    batch = pa.record_batch(
        {
            "a": pa.array([[1.0, 2.0], None, [3.0, float("nan")], [4.0, 5.0], [INFINITE, 6.0]]),
            "b": pa.array([1.0, 2.0, 3.0, 1e39, 5.0]),
        }
    )
    inputs, odd = ArrowReader(slots({"left": "a", "right": "b"})).serve(batch)
    assert odd.tolist() == [False, True, True, True, True]
    assert inputs["left"].tolist() == [[1.0, 2.0]]
    assert inputs["right"].tolist() == [1.0]


def test_serving_numbers_rows_as_they_came():
    reader = ArrowReader(slots("x"))
    reader.serve({"x": pa.array([None, [1.0, 2.0]])})
    with pytest.raises(DataError, match="Received: length 1 in row 4:"):
        reader.serve({"x": pa.array([None, [1.0, 2.0], [3.0]])})


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
def test_serving_vectors_and_arrays_gives_dense_inputs(kind):
    array = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    inputs, nulls = ArrowReader(slots("x")).serve({"x": lists(array, kind)})
    np.testing.assert_array_equal(inputs, array)
    inputs, nulls = ArrowReader(slots("x")).serve(
        {"x": pa.array([sparse(50, {1: 2.0}), None, sparse(50, {})], type=VECTOR)}
    )
    assert (inputs.shape, nulls.tolist(), inputs[0, 1]) == ((2, 50), [False, True, False], 2.0)


def test_serving_only_nulls_gives_no_rows():
    inputs, nulls = ArrowReader(slots("x")).serve({"x": pa.array([None, None], type=pa.list_(pa.float32()))})
    assert (len(inputs), nulls.tolist()) == (0, [True, True])
