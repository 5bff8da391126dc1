"""`keraunos resume`: run the program again whose training was saved in a directory. Runs on the driver."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keraunos.errors import CheckpointError
from keraunos.launch.program import PROGRAM_FILE, why_not


def resume(directory: str) -> int:
    """Run the program that trains in this directory; its `fit` goes on where it was saved. Gives its exit code."""
    program = _noted(directory)
    reason = why_not(program)
    if reason is not None:
        raise CheckpointError(f"{directory!r} cannot be resumed from the command line, because {reason}.")
    print(f"In {program['folder']}: {' '.join(program['command'])}", flush=True)
    return subprocess.run(program["command"], cwd=program["folder"], check=False).returncode


def _noted(directory: str) -> Mapping[str, Any]:
    path = Path(directory.removeprefix("file://").removeprefix("file:"))
    try:
        content = path.joinpath(PROGRAM_FILE).read_bytes() if path.is_dir() else _from_hadoop(directory)
        noted: Mapping[str, Any] = json.loads(content)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{directory!r} is no directory in which a training was saved. Expected what `fit` writes to its "
            f"checkpointDir. Received: {error}."
        ) from error
    return noted


def _from_hadoop(directory: str) -> bytes:
    """A directory elsewhere is read by a Spark that is started for it."""
    if "://" not in directory:
        raise FileNotFoundError(f"there is no directory {directory!r}")
    from keraunos.cli.local_spark import local_spark
    from keraunos.launch.hadoop_checkpoints import folder_of

    with (
        tempfile.TemporaryDirectory() as folder,
        local_spark("local[1]", Path(folder), verbose=False) as spark,
        folder_of(spark, directory).open(PROGRAM_FILE) as file,
    ):
        return file.read()
