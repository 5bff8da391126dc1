import collections

import pytest

from keraunos.compat.tensorspark.core.partitioner import RandomPartitioner


def test_every_partition_gets_its_part():
    partitioner = RandomPartitioner(4, seed=1)
    counts = collections.Counter(partitioner("the same key") for _ in range(4000))
    assert sorted(counts) == [0, 1, 2, 3]
    assert all(800 < count < 1200 for count in counts.values())


def test_a_seed_repeats_the_choice():
    first, second = (RandomPartitioner(9, seed=3) for _ in range(2))
    assert [first(0) for _ in range(50)] == [second(0) for _ in range(50)]


@pytest.mark.spark
def test_rows_are_spread_again_each_time_and_none_is_lost(spark):
    partitioner, another = RandomPartitioner(2, seed=1), RandomPartitioner(2, seed=2)
    rows = spark.sparkContext.parallelize([(0, number) for number in range(200)], 2)
    once = rows.partitionBy(2, partitioner)
    twice = once.partitionBy(2, another)
    placed = [[{number for _, number in part} for part in each.glom().collect()] for each in (once, twice)]
    for left, right in placed:
        assert len(left) + len(right) == 200
        assert left | right == set(range(200))
        assert 60 < len(left) < 140
    assert placed[0] != placed[1]
    # Spark computes a partition that it lost again; every row must go where it went before.
    again = rows.partitionBy(2, RandomPartitioner(2, seed=1)).glom().collect()
    assert [{number for _, number in part} for part in again] == placed[0]
