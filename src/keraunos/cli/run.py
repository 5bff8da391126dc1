"""`keraunos run`: a program of an older system, on this machine or as a cluster's client. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.compat.run_unchanged.script import folder_of, run_script
from keraunos.compat.run_unchanged.spark_settings import prepare_environment
from keraunos.compat.run_unchanged.systems import system_named


def run(system_name: str, script: str, arguments: Sequence[str]) -> int:
    """Run the script in this process, and give its exit code."""
    system = system_named(system_name)
    prepare_environment(system, folder_of(script))
    return run_script(script, arguments, system)
