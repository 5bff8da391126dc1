"""`bigdl.util.engine`: which Spark a program runs on. Runs on the driver."""

from __future__ import annotations

import importlib.util

from keraunos.errors import JobError

__all__ = [
    "compare_version",
    "exist_pyspark",
    "get_bigdl_classpath",
    "is_spark_below_2_2",
    "prepare_env",
]


def exist_pyspark() -> bool:
    """Returns whether pyspark can be imported."""
    return importlib.util.find_spec("pyspark") is not None


def get_bigdl_classpath() -> str:
    """Returns an empty result, because there is no jar."""
    return ""


def is_spark_below_2_2() -> bool:
    """Returns whether Spark is older than 2.2."""
    import pyspark

    return compare_version(pyspark.__version__, "2.2") < 0


def compare_version(version1: str, version2: str) -> int:
    """1 where the first version is the later one, -1 where the second one is, 0 where they are equal."""
    one, two = (_numbers(each) for each in (version1, version2))
    length = max(len(one), len(two))
    one, two = ([*each, *[0] * (length - len(each))] for each in (one, two))
    return (one > two) - (one < two)


def prepare_env() -> None:
    """Nothing: no environment variable has to be set."""


def _numbers(version: str) -> list[int]:
    try:
        return [int(part) for part in version.split(".")]
    except ValueError:
        raise JobError(f"A version must be numbers between dots. Received: {version!r}.") from None
