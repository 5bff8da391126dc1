"""The program that spark-submit runs for `keraunos submit`: runs the script that it is given. Runs on the driver.

spark-submit … submitted.py SYSTEM SCRIPT [ARGUMENT …]
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python has put the folder of this file there, whose modules no program should find.
    sys.path[0] = ""

from keraunos.compat.run_unchanged.script import of_its_day, run_script
from keraunos.compat.run_unchanged.systems import System, system_named
from keraunos.errors import JobError, KeraunosError

logger = logging.getLogger(__name__)


def main(system_name: str, script: str, *arguments: str) -> int:
    """Run the script from where Spark has put it."""
    try:
        system, path = system_named(system_name), _found(script)
        if "://" in script:
            _check_day(system, path)
        return run_script(path, arguments, system)
    except KeraunosError as error:
        print(f"keraunos: {error}", file=sys.stderr)
        return 2


def _check_day(system: System, path: str) -> None:
    """A program that could not be read where it was submitted from must have been said to be of an older Keras."""
    told = of_its_day(system, path)
    if told.python2:
        logger.warning(
            "The program is for Python 2, and the executors have not been told: there, its modules are read as Python "
            "3 where nothing in them tells. Submit it from a file of this machine."
        )
    day = told.keras
    if day != system.keras:
        raise JobError(
            f"The program was written for Keras {day}, and the executors have been told of none. Received: a program "
            f"at a URL. Submit it with --keras {day}."
        )


def _found(script: str) -> str:
    """The script itself, or its copy in one of the folders that Spark unpacked `--py-files` into."""
    if Path(script).is_file():
        return script
    name = script.rpartition("/")[2]
    copies = [Path(folder) / name for folder in ("", *sys.path) if (Path(folder) / name).is_file()]
    return str(copies[0]) if copies else script


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
