"""`keraunos submit`: submits a program of an older system to a cluster by spark-submit. Runs on the driver.

Spark runs `submitted.py`, which installs the modules of the older system and then runs the script.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from keraunos.cli import submitted
from keraunos.cli.spark_options import SparkCommandLine
from keraunos.compat.run_unchanged.script import folder_of, of_its_day
from keraunos.compat.run_unchanged.spark_settings import options_of, settings_for, with_defaults
from keraunos.compat.run_unchanged.systems import system_named
from keraunos.errors import JobError
from keraunos.launch.preflight import check_java


def submit(system_name: str, arguments: Sequence[str], keras: str = "") -> NoReturn:
    """Replace this process by spark-submit, so that output, signals and exit code are those of spark-submit."""
    line = SparkCommandLine.parse(arguments)
    command = [str(spark_home() / "bin" / "spark-submit"), *submit_arguments(system_name, line, keras)]
    environment = python_for(os.environ, clustered=_is_clustered(line))
    check_java()
    sys.stdout.flush()
    os.execve(command[0], command, environment)  # noqa: S606 - no shell is wanted


def submit_arguments(system_name: str, line: SparkCommandLine, keras: str = "") -> list[str]:
    """Returns the arguments of spark-submit. The user's options follow ours and override them."""
    system = system_named(system_name)
    if not line.script:
        raise JobError(
            "No script is given. Expected a script after the options of spark-submit. Received: "
            f"{' '.join(line.words())!r}."
        )
    local = "://" not in line.script
    if local and not Path(line.script).is_file():
        raise JobError(f"The script must be a file of Python source. Received: {line.script!r}, which does not exist.")
    system = of_its_day(system, line.script, keras)
    options = options_of(settings_for(system, folder_of(line.script) if local else ""))
    if line.value_of("--name") is None and line.setting("spark.app.name") is None:
        options += ["--name", Path(line.script).name]
    words = list(line.words())
    if not local or _is_clustered(line):
        # Only files that are passed to Spark reach the driver's machine. The script is found there by its name.
        shipped = line.value_of("--py-files") or line.setting("spark.submit.pyFiles")
        options += ["--py-files", f"{shipped},{line.script}" if shipped else line.script]
        words = list(line.without("--py-files").words())
    return [*options, *words, submitted.__file__, system.label, line.script, *line.arguments]


def spark_home() -> Path:
    """Returns the folder of the Spark to use: SPARK_HOME, or the Spark that came with pyspark."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def python_for(environment: Mapping[str, str], *, clustered: bool) -> dict[str, str]:
    """Returns the environment with this Python for driver and executors, unless the user has chosen another."""
    # In cluster mode the driver has only the Python that was chosen for the executors.
    drivers = {} if clustered and "PYSPARK_PYTHON" in environment else {"PYSPARK_DRIVER_PYTHON": sys.executable}
    return drivers | with_defaults(environment)


def _is_clustered(line: SparkCommandLine) -> bool:
    return (line.value_of("--deploy-mode") or line.setting("spark.submit.deployMode")) == "cluster"
