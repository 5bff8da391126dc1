"""One target under Atheris: `python -m fuzz.engine TARGET [libFuzzer's own arguments]`. Needs Atheris.

libFuzzer ends the process by itself, so that `python -m fuzz` starts one for each thing that it does.
"""

from __future__ import annotations

import importlib
import logging
import os
import shlex
import sys
import warnings
from typing import Any

# Building a model must cost little; nothing is computed with it.
os.environ.setdefault("KERAS_BACKEND", "numpy")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main(arguments: list[str]) -> None:
    """Fuzz a target until libFuzzer is told to end, or something is found."""
    import atheris

    with atheris.instrument_imports(include=["keraunos"], enable_loader_override=False):
        target: Any = importlib.import_module(f"fuzz.{arguments[0]}")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for seed in target.seeds():
        target.one(seed)  # what is imported late is imported now, and is no news to the fuzzer
    # libFuzzer starts itself again by this name when it merges.
    itself = shlex.join([sys.executable, "-m", "fuzz.engine", arguments[0]])
    atheris.Setup([itself, *arguments[1:]], target.one, internal_libfuzzer=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
