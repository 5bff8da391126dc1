"""`keraunos run`: runs a program of an older system, on this machine or as a client of a cluster.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keraunos.compat.run_unchanged.aliases import named
from keraunos.compat.run_unchanged.script import folder_of, of_its_day, run_script, source_of
from keraunos.compat.run_unchanged.spark_settings import prepare_environment
from keraunos.compat.run_unchanged.systems import System, system_named


def run(system_name: str, script: str, arguments: Sequence[str], keras: str = "") -> int:
    """Run the script in this process. Returns its exit code. `keras` is the Keras that it was written for."""
    system = of_its_day(system_named(system_name), script, keras)
    prepare_environment(system, folder_of(script), _slots(system, script))
    return run_script(script, arguments, system)


def _slots(system: System, script: str) -> int:
    """Returns the number of task slots that the program will request, or 0 if the source does not show it."""
    if system.slots is None or not Path(script).is_file():
        return 0
    return named(system.slots)(source_of(script)) or 0
