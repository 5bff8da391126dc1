"""Labels outside of the model's classes are refused as rows arrive, with an example."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.data.shard import ShardBuilder
from keraunos.errors import DataError
from keraunos.job.columns import Columns, Slot

COLUMNS = Columns((Slot(None, ("x",)),), (Slot(None, ("label",), classes=3),))


def add(labels):
    with ShardBuilder(COLUMNS, budget=1 << 20, spool_dir=None) as builder:
        builder.add(pa.RecordBatch.from_pydict({"x": pa.array(np.zeros(len(labels))), "label": pa.array(labels)}))
        return builder.rows


@given(st.lists(st.integers(0, 2), min_size=1))
def test_labels_of_known_classes_pass_as_any_number_type(labels):
    assert add(labels) == add([float(label) for label in labels]) == len(labels)


@pytest.mark.parametrize("wrong", [3, -1, 7])
def test_a_class_the_model_lacks_is_named_with_its_row(wrong):
    with pytest.raises(DataError, match=rf"'label' .* from 0 to 2\. Received: {wrong} in row 2"):
        add([0, 1, wrong])


def test_a_label_between_two_classes_is_no_class():
    with pytest.raises(DataError, match=r"Received: 0\.5 in row 1"):
        add([0.0, 0.5])
