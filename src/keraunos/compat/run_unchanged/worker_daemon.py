"""The process that Spark forks its Python workers from, with a program's names installed. Runs on executors.

Spark starts it in place of `pyspark.daemon` because `spark.python.daemon.module` says so. Nothing heavy is imported
here: what the workers do not need, they would all carry.
"""

from __future__ import annotations

import os
import sys

from pyspark import daemon

from keraunos.compat.run_unchanged import aliases
from keraunos.compat.run_unchanged.spark_settings import FOLDER_VARIABLE, SYSTEM_VARIABLE
from keraunos.compat.run_unchanged.systems import system_named
from keraunos.learners.between_tasks import keep_cheap


def main() -> None:
    """Install the names, then do what Spark's own daemon does."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    if folder:
        sys.path.insert(0, folder)  # where the modules beside the script are, on machines that have it
    aliases.install(system_named(os.environ.get(SYSTEM_VARIABLE, "")))
    keep_cheap()  # a program's own functions may import a framework, too; forked workers have what is begun here
    daemon.manager()


if __name__ == "__main__":
    main()
