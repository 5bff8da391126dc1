"""Which session a program's object belongs to. Runs on the driver.

Spark is imported only when a session is asked for.
"""

from __future__ import annotations

from typing import Any

from keraunos.session.session import Session


def session_of(source: Any) -> Session:
    """Returns the session of a SparkSession, a SparkContext, a DataFrame or an RDD.

    Hadoop's settings in a SparkSession's own configuration count where that SparkSession is given, and for its
    DataFrames and RDDs those of the application.
    """
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from keraunos.session.classic import ClassicSession

    if isinstance(source, SparkSession):
        return ClassicSession(source.sparkContext, source)
    if isinstance(source, DataFrame):
        return ClassicSession(source.sparkSession.sparkContext)
    return ClassicSession(source.context if isinstance(source, RDD) else source)


def running_session() -> Session | None:
    """Returns the session of the application that runs in this process, or `None`; nothing is started."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return None if context is None else session_of(context)


def started_session() -> Session:
    """Returns the session of the application that runs in this process; it is started if there is none."""
    from pyspark import SparkContext

    return session_of(SparkContext.getOrCreate())


def was_stopped() -> bool:
    """Returns whether the application of this process was stopped, which leaves a JVM without a context."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None and SparkContext._active_spark_context is None
