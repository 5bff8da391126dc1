import pytest

from keraunos.launch.kept_rows import kept

pytestmark = pytest.mark.spark


def test_rows_are_kept_meanwhile(spark):
    frame, rdd = spark.range(7), spark.sparkContext.parallelize([1, 2])
    with kept(frame), kept(rdd):
        assert frame.storageLevel.useMemory
        assert rdd.getStorageLevel().useMemory
    assert not frame.storageLevel.useMemory
    assert not rdd.getStorageLevel().useMemory


def test_what_a_user_keeps_stays_kept(spark):
    frame = spark.range(8).cache()
    with kept(frame.select("id")):
        pass
    assert frame.storageLevel.useMemory
    frame.unpersist()
