"""Adds to a notebook: Spark's names, `%pyspark`, an older system's modules, live curves. Runs on the driver.

Spark is started when a cell first uses `spark`, `sc` or `sqlContext`, with the settings of `keraunos run`.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from keraunos.compat.run_unchanged import aliases
from keraunos.compat.run_unchanged.lazy_names import LazyBuiltins, give_names
from keraunos.compat.run_unchanged.spark_settings import (
    SYSTEM_VARIABLE,
    options_of,
    prepare_environment,
    with_defaults,
)
from keraunos.compat.run_unchanged.systems import System, system_named
from keraunos.notebook.live_curve import LiveCurve
from keraunos.telemetry.progress import DISPLAY

# Spark's log and its text bars would appear between a cell and its output.
QUIET = {
    "spark.app.name": "keraunos notebook",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}
NOTEBOOK_VARIABLE = "JPY_SESSION_NAME"  # set by Jupyter's server to the kernel's file

_MAGICS = ("pyspark", "spark.pyspark")
_CELL_MAGIC = re.compile(r"%(?=%(?:spark\.)?pyspark\s*$)")

_loaded: WeakKeyDictionary[Any, _Cells] = WeakKeyDictionary()


def load(shell: Any) -> None:
    """Add all features to the shell; KERAUNOS_RUN_AS names the system whose modules can be imported."""
    if shell not in _loaded:
        _loaded[shell] = _Cells(shell, system_named(os.environ.get(SYSTEM_VARIABLE, "")))


def unload(shell: Any) -> None:
    """Remove the features, but not a running Spark and imported modules."""
    cells = _loaded.pop(shell, None)
    if cells is not None:
        cells.close()


def pyspark(line: str) -> None:
    """`%pyspark`: the cell is Python with Spark, as every cell here is. `%%pyspark` is the same."""
    if line.strip():
        from IPython.core.error import UsageError

        raise UsageError(
            f"%pyspark stands alone on its line, and the cell's code below it. Received: {line.strip()!r} beside it."
        )


def as_python(lines: list[str]) -> list[str]:
    """Returns a cell that begins with `%%pyspark`, converted to begin with `%pyspark`, which runs it as plain Python.

    A cell that is `sc` alone would be IPython's old magic of that name, for as long as nothing has made ours.
    """
    if [line.strip() for line in lines] == ["sc"]:
        return ["(sc)\n"]
    return [_CELL_MAGIC.sub("", lines[0]), *lines[1:]] if lines else lines


class _Cells:
    """The changes to one shell, and how to undo them."""

    def __init__(self, shell: Any, system: System) -> None:
        self._shell = shell
        self._system = system
        self._own_master = "MASTER" not in os.environ
        self._slots = 0
        _prepare(system)
        aliases.install_on_driver(system)
        for name in _MAGICS:
            shell.register_magic_function(pyspark, "line", name)
        shell.input_transformers_cleanup.append(as_python)
        shell.events.register("pre_run_cell", self._before_cell)
        if "IPKernelApp" in shell.config:
            setattr(shell, DISPLAY, LiveCurve)
        give_names(shell.user_ns, system)
        for source in _sources_of(os.environ.get(NOTEBOOK_VARIABLE, "")):
            self._count_slots(source)

    def close(self) -> None:
        for name in _MAGICS:
            self._shell.magics_manager.magics["line"].pop(name, None)
        self._shell.input_transformers_cleanup.remove(as_python)
        self._shell.events.unregister("pre_run_cell", self._before_cell)
        if getattr(self._shell, DISPLAY, None) is LiveCurve:
            delattr(self._shell, DISPLAY)
        self._shell.user_ns["__builtins__"] = builtins

    def _before_cell(self, info: Any) -> None:
        # `%reset` empties the namespace.
        if not isinstance(self._shell.user_ns.get("__builtins__"), LazyBuiltins):
            give_names(self._shell.user_ns, self._system)
        self._count_slots(info.raw_cell)

    def _count_slots(self, source: str) -> None:
        """If a local Spark will be started, give it as many slots as the cells will request."""
        if self._system.slots is None or not self._own_master:
            return
        code = self._shell.transform_cell(source).encode()
        asked = aliases.named(self._system.slots)(code) or 0
        if asked > self._slots:
            self._slots = asked
            del os.environ["MASTER"]
            os.environ.update(with_defaults(os.environ, asked))


def _prepare(system: System) -> None:
    """Runs once per process, because Spark's settings for a program remain."""
    quiet = shlex.join(options_of(QUIET))
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    if quiet not in given:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{quiet} {given}"
        prepare_environment(system, str(Path.cwd()))


def _sources_of(path: str) -> list[str]:
    """Returns the code cells of a notebook's file; none if it cannot be read, which Jupyter reports."""
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError):
        return []
