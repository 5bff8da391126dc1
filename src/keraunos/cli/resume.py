"""`keraunos resume`: runs the program again whose training was saved in a directory. Runs on the driver.

A file in the directory decides what is run. The directory and the file must therefore belong to this user, and others
must not be able to write to them. The command is shown and needs a confirmation.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from keraunos import scratch
from keraunos.checkpoints.folder import Folder, LocalFolder, Owned
from keraunos.errors import CheckpointError
from keraunos.launch.program import PROGRAM_FILE, Program

NOT_RUN = 1


def resume(directory: str, arguments: Sequence[str] = (), *, yes: bool = False) -> int:
    """Run the program that trains in this directory; its `fit` resumes. Returns its exit code.

    Args:
        directory: the checkpointDir, on any Hadoop path.
        arguments: replace the stored arguments of the program, unless empty.
        yes: run without asking.
    """
    program = _noted(directory)
    reason = program.why_not()
    if reason is not None:
        raise CheckpointError(f"{directory!r} cannot be resumed from the command line, because {reason}.")
    if arguments:
        program = replace(program, arguments=tuple(arguments))
    words = [*program.command, *program.arguments]
    print(f"In {program.folder}: {shlex.join(words)}", flush=True)
    if not program.is_complete:
        raise CheckpointError(
            f"{directory!r} cannot be resumed as it is: an argument of the program that looks like a secret was not "
            f"stored. Give all arguments again: keraunos resume {shlex.quote(directory)} -- ARGUMENT ..."
        )
    if not yes and not _agreed(directory):
        print("Not run.")
        return NOT_RUN
    return subprocess.run(words, cwd=program.folder, check=False).returncode


def trusted(folder: Folder) -> bytes:
    """Returns the content of the program's file. Raises `CheckpointError` if another user may have written it."""
    owned = folder.read_owned(PROGRAM_FILE)
    _check(owned, folder.path)
    return owned.content


def _agreed(directory: str) -> bool:
    """Returns whether the user at the terminal confirms the command."""
    if not sys.stdin.isatty():
        raise CheckpointError(
            f"{directory!r} was not resumed: `keraunos resume` asks before it runs a command, and there is no terminal "
            "to ask at. In a script, read the command above and give --yes."
        )
    try:
        return input("Run it? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _noted(directory: str) -> Program:
    path = Path(directory.removeprefix("file://").removeprefix("file:"))
    try:
        content = trusted(LocalFolder(path)) if path.is_dir() else _from_hadoop(directory)
        return Program.from_json(json.loads(content))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{directory!r} does not contain a saved training. Expected the files that `fit` writes to its "
            f"checkpointDir. Received: {error}."
        ) from error


def _from_hadoop(directory: str) -> bytes:
    """Returns the content of the file in a directory on another file system, read by a Spark that is started for it."""
    if "://" not in directory:
        raise FileNotFoundError(f"there is no directory {directory!r}")
    from keraunos.cli.local_spark import local_spark
    from keraunos.launch.hadoop_checkpoints import folder_of
    from keraunos.session.registry import session_of

    with (
        scratch.folder("resume") as folder,
        local_spark("local[1]", Path(folder), verbose=False) as spark,
    ):
        return trusted(folder_of(session_of(spark), directory))


def _check(owned: Owned, path: str) -> None:
    for name, status in ((path, owned.folder), (f"{path}/{PROGRAM_FILE}", owned.file)):
        if status.owner == owned.reader and not status.mode & 0o022:
            continue
        raise CheckpointError(
            f"{path!r} cannot be resumed: another user may have written {name!r}, which decides what is run. Expected: "
            f"owner {owned.reader!r}, and no write permission for others. Received: owner {status.owner!r}, mode "
            f"{status.mode:04o}. Run the program again yourself. Or, if the owner is right and you trust the file, "
            f"remove the write permission of others (chmod go-w). The stored command: {_command_in(owned.content)}"
        )


def _command_in(content: bytes) -> str:
    try:
        program = Program.from_json(json.loads(content))
    except (ValueError, RecursionError):
        return "none"
    return repr(shlex.join([*program.command, *program.arguments]))
