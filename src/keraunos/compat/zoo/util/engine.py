"""`zoo.util.engine`: which Spark a program runs on. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.zoo.bigdl.util.engine import compare_version, exist_pyspark, is_spark_below_2_2, prepare_env

__all__ = [
    "compare_version",
    "exist_pyspark",
    "get_analytics_zoo_classpath",
    "is_spark_below_2_2",
    "is_spark_below_ver",
    "prepare_env",
]


def get_analytics_zoo_classpath() -> str:
    """Returns an empty result, because there is no jar."""
    return ""


def is_spark_below_ver(ver: str) -> bool:
    """Returns whether Spark is older than a version."""
    import pyspark

    return compare_version(pyspark.__version__, ver) < 0
