"""Arrays of the driver's reach the executors whole, in order, and not inside of tasks where they are large."""

import gc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keraunos.launch import driver_rows
from keraunos.launch.driver_rows import LARGEST_TASK, spread_arrays, spread_columns
from keraunos.ml.rendering import nested_lists
from keraunos.session.registry import session_of

pytestmark = pytest.mark.spark


def temporary_files(spark):
    return set(Path(spark.sparkContext._temp_dir).iterdir())


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(0, 40), partitions=st.integers(1, 7), as_tasks=st.booleans())
def test_rows_come_in_order_in_as_many_partitions_as_there_can_be(spark, monkeypatch, rows, partitions, as_tasks):
    monkeypatch.setattr(driver_rows, "LARGEST_TASK", LARGEST_TASK if as_tasks else -1)
    arrays = [np.arange(rows * 3, dtype=np.float32).reshape(rows, 3), np.arange(rows, dtype=np.uint8)]
    rdd = spread_arrays(session_of(spark), arrays, partitions)
    found = rdd.collect()
    assert rdd.getNumPartitions() == len(found) == max(1, min(rows, partitions))
    for at, array in enumerate(arrays):
        joined = np.concatenate([each[at] for each in found])
        np.testing.assert_array_equal(joined, array)
        assert joined.dtype == array.dtype


def test_large_portions_are_broadcast_and_serve_what_only_java_knows_of(spark):
    before = temporary_files(spark)
    array = np.arange(LARGEST_TASK, dtype=np.float32)
    frame = spread_arrays(session_of(spark), [array], 2).map(lambda portion: (float(portion[0].sum()),)).toDF(["sum"])
    made = temporary_files(spark) - before
    assert sum(path.stat().st_size for path in made) >= array.nbytes
    gc.collect()
    assert sum(row["sum"] for row in frame.collect()) == pytest.approx(float(array.sum(dtype=np.float64)), rel=1e-4)


def test_a_data_frame_of_arrays_has_their_rows_in_order(spark):
    array = np.arange(100_000 * 4, dtype=np.uint16).reshape(-1, 4)
    frame = spread_columns(
        spark, [array], 3, lambda arrays: [nested_lists(arrays[0].astype(np.int32))], "pixels array<int>"
    )
    assert frame.rdd.getNumPartitions() == 3
    found = frame.toArrow().column("pixels").combine_chunks().flatten().to_numpy()
    np.testing.assert_array_equal(found.reshape(-1, 4), array)


@pytest.mark.parametrize("size", [10, LARGEST_TASK])
def test_rows_come_to_programs_whose_environment_is_not_activated(spark, monkeypatch, size):
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "a-python-without-these-packages")
    array = np.ones((size, 1), np.float32)
    frame = spread_columns(spark, [array], 2, lambda arrays: [nested_lists(arrays[0])], "ones array<float>")
    assert frame.count() == size
    assert spread_arrays(session_of(spark), [array], 2).map(lambda portion: portion[0].sum()).sum() == size
