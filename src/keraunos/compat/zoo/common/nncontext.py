"""The Spark context of an Analytics Zoo program. Runs on the driver.

There is no engine to set up: any context will do, and these functions only get or make one.
"""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any, NoReturn

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from keraunos.compat.zoo.bigdl.util import common as _bigdl
from keraunos.errors import JobError
from keraunos.session.registry import session_of

__all__ = [
    "ZooContext",
    "getOrCreateSparkContext",
    "get_optimizer_version",
    "init_nncontext",
    "init_spark_conf",
    "init_spark_on_k8s",
    "init_spark_on_local",
    "init_spark_on_yarn",
    "init_spark_standalone",
    "multiprocessing",
    "set_optimizer_version",
    "stop_spark_standalone",
    "warnings",
]
# Imported from BigDL; a star import of this module re-exported them.
__all__ += _bigdl.__all__

# What spark-analytics-zoo.conf had, but for a setting that Spark dropped in 1.6.
_SETTINGS = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.serializer": "org.apache.spark.serializer.JavaSerializer",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.speculation": "false",
}
_LEVELS = ("ALL", "DEBUG", "ERROR", "FATAL", "INFO", "OFF", "TRACE", "WARN")


def __getattr__(name: str) -> Any:
    return _bigdl.passed_on("zoo.common.nncontext", name)


class ZooContext:
    """The program's settings before its context is created.

    `log_output` asked for the output of Spark's process. That comes with the program's own in any case, as long as
    nobody redirects it.
    """

    log_output = False


def init_nncontext(
    conf: SparkConf | str | None = None, spark_log_level: str = "WARN", redirect_spark_log: bool | None = None
) -> SparkContext:
    """Returns the running Spark context, or a new one.

    Args:
        conf: the configuration of a new context, or its application's name.
        spark_log_level: what Spark logs from here on.
        redirect_spark_log: whether Spark's log goes to the file bigdl.log, and only errors to the console. Here it
            must be asked for.
    """
    if spark_log_level.upper() not in _LEVELS:
        raise JobError(f"`spark_log_level` must be one of {', '.join(_LEVELS)}. Received: {spark_log_level!r}.")
    builder = SparkSession.builder
    if isinstance(conf, SparkConf):
        builder = builder.config(conf=conf)
    elif isinstance(conf, str):
        builder = builder.appName(conf)
    elif conf is not None:
        raise JobError(f"`conf` must be a SparkConf or an application's name. Received: {conf!r}.")
    context = builder.getOrCreate().sparkContext
    # What programs make of Samples and arrays here is made of them in workers, too.
    session_of(context).choose_own_python()
    context.setLogLevel(spark_log_level.upper())
    if redirect_spark_log:
        _bigdl.redire_spark_logs()
    return context


def getOrCreateSparkContext(conf: SparkConf | None = None, appName: str | None = None) -> SparkContext:
    """Returns the running Spark context, or a new one."""
    conf = init_spark_conf() if conf is None else conf
    context = SparkContext.getOrCreate(conf if appName is None else conf.setAppName(appName))
    session_of(context).choose_own_python()
    return context


def get_optimizer_version(bigdl_type: str = "float") -> str:
    """Returns the only one that there is."""
    del bigdl_type
    return "optimizerV1"


def set_optimizer_version(optimizerVersion: str, bigdl_type: str = "float") -> None:
    """Refuse another one than the one that there is."""
    if optimizerVersion.lower() != "optimizerv1":
        raise JobError(
            f"`optimizerVersion` must be 'optimizerV1': BigDL's second version ran its models in MKL-DNN. Received: "
            f"{optimizerVersion!r} ({bigdl_type})."
        )


def init_spark_conf(conf: dict[str, str] | None = None) -> SparkConf:
    """Returns a Spark configuration with the given keys, over those that Analytics Zoo set.

    Nothing has to be set for training; programs read these.
    """
    return SparkConf().setAll(list({**_SETTINGS, **(conf or {})}.items()))


def init_spark_on_local(
    cores: int | str = 2,
    conf: dict[str, str] | None = None,
    python_location: str | None = None,
    spark_log_level: str = "WARN",
    redirect_spark_log: bool | None = None,
) -> SparkContext:
    """Returns a Spark context on this machine with this many task slots; `"*"` for one per core."""
    if cores != "*" and (isinstance(cores, bool) or not isinstance(cores, int) or cores < 1):
        raise JobError(f"`cores` must be a whole number of at least 1, or '*'. Received: {cores!r}.")
    if python_location is not None:
        raise JobError(
            f"`python_location` must be left out: local workers run the driver's own Python. Received: "
            f"{python_location!r}. For another one set the environment variable PYSPARK_PYTHON."
        )
    return init_nncontext(init_spark_conf(conf).setMaster(f"local[{cores}]"), spark_log_level, redirect_spark_log)


def init_spark_on_yarn(*_: Any, **__: Any) -> NoReturn:
    """Refused: a program is sent to YARN by spark-submit."""
    raise _elsewhere("init_spark_on_yarn", "--master yarn --archives environment.tar.gz#environment")


def init_spark_on_k8s(*_: Any, **__: Any) -> NoReturn:
    """Refused: a program is sent to Kubernetes by spark-submit."""
    raise _elsewhere("init_spark_on_k8s", "--master k8s://https://… --conf spark.kubernetes.container.image=…")


def init_spark_standalone(*_: Any, **__: Any) -> NoReturn:
    """Refused: a program is sent to a standalone cluster by spark-submit."""
    raise _elsewhere("init_spark_standalone", "--master spark://host:7077")


def stop_spark_standalone() -> NoReturn:
    """Refused: no standalone cluster is started here."""
    raise _elsewhere("stop_spark_standalone", "--master spark://host:7077")


def _elsewhere(name: str, options: str) -> JobError:
    return JobError(
        f"{name} must be replaced: it packs an environment and starts a cluster's driver from inside a program, which "
        f"is spark-submit's work. Call init_nncontext() and start the program with `keraunos submit --as zoo {options} "
        "script.py`."
    )
