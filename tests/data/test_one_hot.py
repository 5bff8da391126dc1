"""Class numbers that become one-hot rows on their way to the model."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.data.shard import ShardBuilder
from keraunos.errors import ColumnError, DataError
from keraunos.job.columns import Columns, Slot


def batch_of(labels, classes, **options):
    columns = Columns((Slot(None, ("x",)),), (Slot(None, ("label",), classes=classes, one_hot=True),))
    with ShardBuilder(columns, budget=1 << 20, spool_dir=None, **options) as builder:
        numbers = pa.array(np.arange(len(labels), dtype=np.float32))
        builder.add(pa.RecordBatch.from_pydict({"x": numbers, "label": pa.array(labels)}))
        return next(builder.build(seed=0, rank=0).batches(0, len(labels)))


@pytest.mark.parametrize("classes", [5, 1000])
@given(data=st.data())
def test_each_row_has_its_one_at_the_class_number(classes, data):
    labels = data.draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=20))
    batch = batch_of([float(label) for label in labels], classes)
    expected = np.eye(classes, dtype=np.float32)[[labels[int(place)] for place in batch.inputs]]
    np.testing.assert_array_equal(batch.targets, expected)


def test_a_label_outside_of_the_classes_is_named():
    with pytest.raises(DataError, match=r"'label' .* from 0 to 2\. Received: 3\.0 in row 1"):
        batch_of([0.0, 3.0], 3)


def test_rows_of_several_numbers_are_no_class_numbers():
    with pytest.raises(DataError, match=r"one class number a row\. Received: rows of shape \(2,\)"):
        batch_of([[0.0, 1.0]], 3)


def test_class_weights_go_by_the_class_numbers():
    batch = batch_of([1.0, 0.0], 3, class_weight={1: 4.0})
    np.testing.assert_array_equal(batch.weights, np.where(batch.targets.argmax(axis=1) == 1, 4.0, 1.0))


def test_the_number_of_classes_must_be_known():
    with pytest.raises(ColumnError, match="must come with its number of classes"):
        Slot(None, ("label",), one_hot=True)


def test_json_keeps_it():
    slot = Slot(None, ("label",), classes=3, one_hot=True)
    assert Slot.from_json(slot.to_json()) == slot
