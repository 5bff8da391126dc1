"""The Spark configuration of a program for Analytics Zoo."""

from keraunos.compat.zoo import init_spark_conf


def test_a_configuration_has_what_analytics_zoo_set():
    conf = init_spark_conf({"spark.executor.cores": "2", "spark.speculation": "true"})
    assert conf.get("spark.shuffle.reduceLocality.enabled") == "false"
    assert conf.get("spark.serializer") == "org.apache.spark.serializer.JavaSerializer"
    assert conf.get("spark.executor.cores") == "2"
    assert conf.get("spark.speculation") == "true"
