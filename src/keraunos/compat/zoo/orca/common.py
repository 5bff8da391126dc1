"""`zoo.orca.common`: the Spark context of an Orca program. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.common.nncontext import (
    ZooContext,
    init_nncontext,
    init_spark_on_k8s,
    init_spark_on_local,
    init_spark_on_yarn,
    init_spark_standalone,
)
from keraunos.errors import JobError, one_of

__all__ = ["OrcaContext", "init_orca_context", "stop_orca_context"]

_SPARKS = ("conf", "python_location", "redirect_spark_log", "spark_log_level")
_ELSEWHERE = {"k8s": init_spark_on_k8s, "standalone": init_spark_standalone, "yarn": init_spark_on_yarn}
_MODES = ("local", "spark-submit")


class _OrcaSettings(type):
    """Refuses the settings of parts of Orca that are not here, which would change nothing."""

    @property
    def log_output(cls) -> bool:
        """Whether Spark's log comes with the program's output."""
        return ZooContext.log_output

    @log_output.setter
    def log_output(cls, value: bool) -> None:
        ZooContext.log_output = value

    def __setattr__(cls, name: str, value: Any) -> None:
        if name != "log_output":
            raise JobError(
                f"OrcaContext.{name} must be left out: it is a setting of Orca's data and estimators, which are not "
                f"supported here. Received: {value!r}. Use zoo.tfpark, zoo.pipeline or keraunos.KerasEstimator."
            )
        super().__setattr__(name, value)


class OrcaContext(metaclass=_OrcaSettings):
    """Spark's contexts of the program."""

    @staticmethod
    def get_spark_context() -> Any:
        """Returns the running SparkContext."""
        from pyspark import SparkContext

        if SparkContext._active_spark_context is None:
            raise JobError("There must be a SparkContext first. Received: none. Call init_orca_context().")
        return SparkContext.getOrCreate()

    @staticmethod
    def get_spark_session() -> Any:
        """Returns the running SparkSession."""
        from pyspark.sql import SparkSession

        OrcaContext.get_spark_context()
        return SparkSession.builder.getOrCreate()

    @staticmethod
    def get_sql_context() -> Any:
        """Returns the SQLContext."""
        from pyspark.sql import SQLContext

        return SQLContext.getOrCreate(OrcaContext.get_spark_context())


def init_orca_context(
    cluster_mode: str = "local",
    cores: int | str = 2,
    memory: str = "2g",
    num_nodes: int = 1,
    init_ray_on_spark: bool = False,
    **kwargs: Any,
) -> Any:
    """Returns a Spark context: on this machine for `"local"`, that of the cluster for `"spark-submit"`.

    Args:
        cluster_mode: `"local"` or `"spark-submit"`; the others are refused, because spark-submit starts programs there.
        cores: how many tasks run at once on this machine.
        memory: of Spark's process on this machine.
        num_nodes: 1 on this machine.
        init_ray_on_spark: must be false; there is no Ray here.
        kwargs: `conf`, `spark_log_level`, `redirect_spark_log` and `python_location`.
    """
    mode = cluster_mode.lower()
    unknown = sorted(set(kwargs) - set(_SPARKS))
    elsewhere = [refuse for name, refuse in _ELSEWHERE.items() if mode.startswith(name)]
    if elsewhere:
        elsewhere[0]()
    if mode not in _MODES:
        raise JobError(one_of("cluster_mode", cluster_mode, _MODES))
    if init_ray_on_spark or unknown:
        raise JobError(
            f"`{unknown[0] if unknown else 'init_ray_on_spark'}` must be left out: there is no Ray here. Received: "
            f"{kwargs[unknown[0]] if unknown else init_ray_on_spark!r}."
        )
    if mode == "spark-submit":
        return init_nncontext(**kwargs)
    if num_nodes != 1:
        raise JobError(f"`num_nodes` must be 1 with cluster_mode='local'. Received: {num_nodes!r}.")
    conf = {"spark.driver.memory": memory, **(kwargs.pop("conf", None) or {})}
    return init_spark_on_local(cores, conf, **kwargs)


def stop_orca_context() -> None:
    """Stop the Spark context, if there is one."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        context.stop()
