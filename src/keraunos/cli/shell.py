"""`keraunos shell`: the pyspark shell with the modules of an older system. Runs on the driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from keraunos.cli import shell_startup
from keraunos.cli.spark_options import SparkCommandLine
from keraunos.cli.submit import python_for, spark_home
from keraunos.compat.run_unchanged.spark_settings import SYSTEM_VARIABLE, options_of, settings_for
from keraunos.compat.run_unchanged.systems import System, system_named, with_keras
from keraunos.errors import JobError
from keraunos.launch.preflight import check_java


def shell(system_name: str, arguments: Sequence[str], keras: str = "") -> NoReturn:
    """Replace this process by the pyspark shell. `keras` is the version that `import keras` finds there."""
    system = with_keras(system_named(system_name), keras)
    line = SparkCommandLine.parse(arguments)
    if line.script:
        raise JobError(f"The shell takes options of pyspark only. Received: {line.script!r}. Use `keraunos run`.")
    command = [str(spark_home() / "bin" / "pyspark"), *options_of(settings_for(system, str(Path.cwd())))]
    check_java()
    sys.stdout.flush()
    environment = shell_environment(os.environ, system, interactive=sys.stdin.isatty())
    os.execve(command[0], [*command, *line.words()], environment)  # noqa: S606 - no shell is wanted


def shell_environment(given: Mapping[str, str], system: System, *, interactive: bool) -> dict[str, str]:
    """Returns the environment in which the shell runs our start-up file after its own, and the user's after ours."""
    environment = python_for(given, clustered=False) | {
        "PYTHONSTARTUP": shell_startup.__file__,
        SYSTEM_VARIABLE: system.label,
    }
    if given.get("PYTHONSTARTUP"):
        environment[shell_startup.USERS_VARIABLE] = given["PYTHONSTARTUP"]
    if not interactive:
        # Python runs start-up files only for a terminal, or with -i.
        environment["PYSPARK_DRIVER_PYTHON_OPTS"] = f"{given.get('PYSPARK_DRIVER_PYTHON_OPTS', '')} -i".strip()
    return environment
