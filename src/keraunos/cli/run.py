"""`keraunos run`: a program of an older system, on this machine or as a cluster's client. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keraunos.compat.run_unchanged.aliases import named
from keraunos.compat.run_unchanged.script import folder_of, of_its_day, run_script, source_of
from keraunos.compat.run_unchanged.spark_settings import prepare_environment
from keraunos.compat.run_unchanged.systems import System, system_named


def run(system_name: str, script: str, arguments: Sequence[str], keras: str = "") -> int:
    """Run the script in this process, and give its exit code; `keras` says which Keras it was written for."""
    system = of_its_day(system_named(system_name), script, keras)
    prepare_environment(system, folder_of(script), _slots(system, script))
    return run_script(script, arguments, system)


def _slots(system: System, script: str) -> int:
    """How many task slots the program will ask for, where its system can tell from the source."""
    if system.slots is None or not Path(script).is_file():
        return 0
    return named(system.slots)(source_of(script)) or 0
