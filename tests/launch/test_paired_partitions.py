"""Two RDDs whose partitions are taken together."""

import pytest

from keraunos.launch.paired_partitions import with_marks

pytestmark = pytest.mark.spark


def test_every_partition_has_a_part_of_both(spark):
    context = spark.sparkContext
    training = context.parallelize([(row, 2 * row) for row in range(10)], 5)
    validation = context.parallelize(range(100, 103), 2).map(lambda row: [row, 0])
    first, second, third = with_marks(training, validation, 3).glom().collect()
    assert first == [(0, 0, False), (1, 2, False), (100, 0, True)]
    assert second == [*((row, 2 * row, False) for row in range(2, 6)), (101, 0, True), (102, 0, True)]
    assert third == [(row, 2 * row, False) for row in range(6, 10)]


def test_one_worker_has_all(spark):
    context = spark.sparkContext
    training, validation = context.parallelize([(1,)] * 3, 3), context.parallelize([(2,)] * 4, 7)
    joined = with_marks(training, validation, 1)
    assert joined.getNumPartitions() == 1
    assert sorted(joined.collect()) == [(1, False)] * 3 + [(2, True)] * 4
