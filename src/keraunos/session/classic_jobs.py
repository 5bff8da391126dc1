"""RDDs and plans of classic Spark as its JVM has them. Runs on the driver.

Spark records the environment of the Python workers not when an RDD is created but when its Java RDD is, which pyspark
creates on first access.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import RDD
from pyspark.core.rdd import PipelinedRDD
from pyspark.sql import DataFrame


def partitions_of(dataframe: DataFrame) -> int | None:
    """Returns how many partitions the DataFrame will have, where that can be known without computing it."""
    plan = dataframe._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() != "AdaptiveSparkPlanExec":
        return int(plan.execute().getNumPartitions())
    # Adaptive execution may change the number, but never one that the user asked for with repartition(n).
    top = dataframe._jdf.queryExecution().optimizedPlan()
    while top.getClass().getSimpleName() in ("Project", "MapInArrow"):
        top = top.child()
    if top.getClass().getSimpleName() in ("Repartition", "RepartitionByExpression") and top.shuffle():
        return int(top.numPartitions())
    return None


def pinned(rdd: RDD[Any]) -> RDD[Any]:
    """Returns an RDD of the same Java RDD, which pyspark does not join with what is mapped further."""
    return RDD(rdd._jrdd, rdd.context, rdd._jrdd_deserializer)


def job(rdd: RDD[Any]) -> Callable[[], Any]:
    """Returns a count by Java: the records themselves stay where they are."""
    count: Callable[[], Any] = rdd._jrdd.count
    return count


def apart(rdd: RDD[Any]) -> tuple[Any, Callable[[int, Any], Any] | None]:
    """Returns the parent of an RDD, and the Python functions that Spark would join with the next one."""
    if not isinstance(rdd, PipelinedRDD) or not rdd._is_pipelinable():
        return rdd, None
    source = RDD(rdd._prev_jrdd, rdd.context, rdd._prev_jrdd_deserializer)
    return source.barrier() if rdd._is_barrier() else source, rdd.func


def partition(rdd: RDD[Any], number: int) -> RDD[Any]:
    """Returns one partition of an RDD, as an RDD."""
    java: Any = rdd.context._jvm
    # A set is a function from elements to whether they are in it, which is what Spark asks of each partition's number.
    chosen = java.scala.jdk.javaapi.CollectionConverters.asScala(java.java.util.Collections.singleton(number)).toSet()
    pruned = java.org.apache.spark.rdd.PartitionPruningRDD.create(rdd._jrdd.rdd(), chosen)
    return RDD(pruned.toJavaRDD(), rdd.context, rdd._jrdd_deserializer)
