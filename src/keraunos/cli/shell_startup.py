"""Start-up file of the pyspark shell: installs the modules of an older system. Runs on the driver.

The shell executes this file in its own namespace when `spark` and `sc` exist. The file must therefore remove its own
names.
"""

from __future__ import annotations

import os
from typing import Any

USERS_VARIABLE = "KERAUNOS_USERS_STARTUP"


def _start(namespace: dict[str, Any]) -> None:
    from pathlib import Path

    from keraunos.compat.run_unchanged import aliases
    from keraunos.compat.run_unchanged.lazy_names import give_names
    from keraunos.compat.run_unchanged.spark_settings import SYSTEM_VARIABLE
    from keraunos.compat.run_unchanged.systems import system_named

    system = system_named(os.environ.get(SYSTEM_VARIABLE, ""))
    aliases.install_on_driver(system)
    give_names(namespace, system)
    names = sorted({*system.aliases, *system.fallbacks, *system.shadows})
    if names:
        print(f"Keraunos stands in for {', '.join(names)}.")
    users = os.environ.get(USERS_VARIABLE)
    if users and Path(users).is_file():
        exec(compile(Path(users).read_bytes(), users, "exec", dont_inherit=True), namespace)  # noqa: S102 - theirs


if __name__ == "__main__":
    _start(globals())
    del _start, USERS_VARIABLE, os, Any, annotations
