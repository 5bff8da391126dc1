"""The program that spark-submit runs for `keraunos submit`: runs the given script. Runs on the driver.

spark-submit … submitted.py SYSTEM SCRIPT [ARGUMENT …]
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python has inserted the folder of this file. Programs must not find its modules.
    sys.path[0] = ""

from keraunos.compat.run_unchanged.script import of_its_day, run_script
from keraunos.compat.run_unchanged.systems import System, system_named
from keraunos.errors import JobError, KeraunosError

logger = logging.getLogger(__name__)


def main(system_name: str, script: str, *arguments: str) -> int:
    """Run the script from the folder into which Spark has copied it."""
    try:
        system, path = system_named(system_name), _found(script)
        if "://" in script:
            _check_day(system, path)
        return run_script(path, arguments, system)
    except KeraunosError as error:
        print(f"keraunos: {error}", file=sys.stderr)
        return 2


def _check_day(system: System, path: str) -> None:
    """Raises `JobError` if a program that was submitted by URL needs an older Keras and `--keras` was not given."""
    told = of_its_day(system, path)
    if told.python2:
        logger.warning(
            "The program is written for Python 2, but was submitted by URL, so the executors do not know that. There, "
            "a module "
            "is read as Python 3 unless its source shows that it is for Python 2. Submit the program from a local file."
        )
    day = told.keras
    if day != system.keras:
        raise JobError(
            f"The program was written for Keras {day}, but was submitted by URL without --keras, so the executors do "
            "not know "
            f"that. Submit it with --keras {day}."
        )


def _found(script: str) -> str:
    """Returns the path of the script, or of its copy in a folder into which Spark unpacked `--py-files`."""
    if Path(script).is_file():
        return script
    name = script.rpartition("/")[2]
    copies = [Path(folder) / name for folder in ("", *sys.path) if (Path(folder) / name).is_file()]
    return str(copies[0]) if copies else script


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
