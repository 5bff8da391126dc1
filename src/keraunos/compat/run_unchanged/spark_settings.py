"""The Spark settings that give its Python workers the program's names. Runs on the driver."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping

from keraunos.compat.run_unchanged.systems import System

SYSTEM_VARIABLE = "KERAUNOS_RUN_AS"
FOLDER_VARIABLE = "KERAUNOS_PROGRAM_FOLDER"


def settings_for(system: System, folder: str) -> dict[str, str]:
    """Spark's settings for a program of the system that lies in the folder."""
    settings = {"spark.python.daemon.module": "keraunos.compat.run_unchanged.worker_daemon"}
    for variable, value in ((SYSTEM_VARIABLE, system.label), (FOLDER_VARIABLE, folder)):
        if value:
            settings[f"spark.executorEnv.{variable}"] = value
    return settings


def options_of(settings: Mapping[str, str]) -> list[str]:
    """Returns the settings as options of spark-submit."""
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def prepare_environment(system: System, folder: str, slots: int = 0) -> None:
    """Let any Spark that this process starts have the settings, however the program goes about it.

    A local Spark that is started for want of another has at least `slots` task slots.

    PySpark starts its JVM with the options in PYSPARK_SUBMIT_ARGS; what the user has put there stays and comes later,
    so it wins.
    """
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(options_of(settings_for(system, folder)))} {given}"
    os.environ.update(with_defaults(os.environ, slots))


def with_defaults(environment: Mapping[str, str], slots: int = 0) -> dict[str, str]:
    """Returns the environment with a Python for the executors and a master, if the user has chosen none.

    MASTER is the last place where Spark looks for one: the command line and spark-defaults.conf come first.
    """
    return {"MASTER": f"local[{max(2, _cores(), slots)}]", "PYSPARK_PYTHON": sys.executable} | dict(environment)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
