"""What Spark must be told so that its Python workers know the program's names. Runs on the driver."""

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
    return {
        "spark.python.daemon.module": "keraunos.compat.run_unchanged.worker_daemon",
        f"spark.executorEnv.{SYSTEM_VARIABLE}": system.name,
        f"spark.executorEnv.{FOLDER_VARIABLE}": folder,
    }


def options_of(settings: Mapping[str, str]) -> list[str]:
    """The settings as options of spark-submit."""
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def prepare_environment(system: System, folder: str) -> None:
    """Let any Spark that this process starts have the settings, however the program goes about it.

    PySpark starts its JVM with the options in PYSPARK_SUBMIT_ARGS; what the user has put there stays and comes later,
    so it wins. MASTER is the last place where Spark looks for a master.
    """
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(options_of(settings_for(system, folder)))} {given}"
    os.environ.setdefault("MASTER", f"local[{max(2, _cores())}]")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
