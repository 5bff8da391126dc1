"""The session of classic Spark, and which one an object belongs to."""

import pytest
from py4j.protocol import Py4JJavaError

from keraunos.session.registry import running_session, session_of, started_session, was_stopped
from keraunos.testing.session_suite import SessionSuite

pytestmark = pytest.mark.spark


class TestOfASparkSession(SessionSuite):
    @pytest.fixture
    def session(self, spark):
        return session_of(spark)

    @pytest.fixture
    def again(self, spark):
        return session_of(spark.sparkContext)


class TestOfASparkContext(SessionSuite):
    @pytest.fixture
    def session(self, spark):
        return session_of(spark.sparkContext)

    @pytest.fixture
    def again(self, spark):
        return session_of(spark.range(1))


def test_whatever_is_of_an_application_has_its_session(spark):
    objects = [spark, spark.sparkContext, spark.range(1), spark.sparkContext.parallelize([1])]
    sessions = [*map(session_of, objects), running_session(), started_session()]
    assert [each.application for each in sessions] == [spark.sparkContext] * len(sessions)
    assert not was_stopped()


def test_hadoop_settings_of_a_spark_session_count_where_it_is_given(spark, tmp_path):
    own = spark.newSession()
    (tmp_path / "file").touch()
    own.conf.set("fs.viewfs.mounttable.keraunos-own.link./data", tmp_path.as_uri())
    # Hadoop keeps a file system that it has found, whoever asks for it next.
    with pytest.raises(Py4JJavaError, match="keraunos-own"):
        session_of(spark).folder("viewfs://keraunos-own/data")
    assert session_of(own).folder("viewfs://keraunos-own/data").names() == ["file"]


@pytest.mark.parametrize(("asked", "expected"), [(None, 1), (3, 3)])
def test_partitions_are_known_before_a_dataframe_is_computed(spark, asked, expected):
    rows = spark.range(10, numPartitions=1)
    table = rows if asked is None else rows.repartition(asked)
    assert session_of(table).partitions_of(table) == expected


def test_partitions_that_adaptive_execution_may_change_are_not_known(spark):
    grouped = spark.range(10).groupBy("id").count()
    assert session_of(grouped).partitions_of(grouped) is None
