"""Which program trains here, so that `keraunos resume` can run it again. Runs on the driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAM_FILE = "program.json"


def this_program() -> dict[str, Any]:
    """The command line of this process and where it ran; without one where somebody types it, as in a notebook."""
    return {
        "command": list(sys.orig_argv) if _is_program() else [],
        "folder": str(Path.cwd()),
        "submitted": "PYSPARK_GATEWAY_PORT" in os.environ,
    }


def why_not(program: Mapping[str, Any]) -> str | None:
    """Why a program that was noted cannot be run again, and what to do; `None` where it can."""
    if not program["command"]:
        return "the training was begun in a notebook or a shell. Call `fit` there again, with the same checkpointDir"
    if program["submitted"]:
        words = " ".join(program["command"][1:])
        return f"the training was begun by spark-submit. Submit it again as it was: {words}"
    return None


def _is_program() -> bool:
    main = sys.modules.get("__main__")
    return bool(getattr(main, "__file__", None)) and not hasattr(sys, "ps1") and "ipykernel" not in sys.modules
