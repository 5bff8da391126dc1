"""Which program trains here, so that `keraunos resume` can run it again. Runs on the driver.

The file lies beside the checkpoints and is readable by its owner only. Values of arguments that look like secrets are
not stored; whoever resumes gives the arguments again.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeGuard

PROGRAM_FILE = "program.json"
NOT_STORED = "<not stored>"

# The names that Spark redacts, and their kin. A tokenizer and a number of tokens are no secrets.
_SECRET_NAME = re.compile(
    r"secret|passw(?:or)?d|passphrase|token(?!s|iz)|credential|(?:api|access|private)[-_.]?key", re.IGNORECASE
)
_ADDRESS_WITH_PASSWORD = re.compile(r"\w+://[^/@\s]*:[^/@\s]*@")
# Options of Python itself whose value is a word of its own.
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


@dataclass(frozen=True)
class Program:
    """A command that trains.

    Attributes:
        command: the interpreter, its options and the program; nothing where somebody types it, as in a notebook.
        arguments: what the program was given; `NOT_STORED` stands for what looks like a secret.
        folder: where it ran.
        submitted: whether spark-submit had started it.
    """

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    folder: str
    submitted: bool

    @classmethod
    def of_this_process(cls) -> Self:
        """The program that runs here."""
        words = sys.orig_argv if _is_program() else []
        end = _end_of_command(words)
        return cls(
            command=tuple(words[:end]),
            arguments=without_secrets(words[end:]),
            folder=str(Path.cwd()),
            submitted="PYSPARK_GATEWAY_PORT" in os.environ,
        )

    @classmethod
    def from_json(cls, noted: Any) -> Self:
        """The program that a file tells of; a `ValueError` where it tells of none."""
        facts = noted if isinstance(noted, Mapping) else {}
        command, arguments, folder = (facts.get(name) for name in ("command", "arguments", "folder"))
        if not _are_words(command) or not _are_words(arguments) or not isinstance(folder, str):
            raise ValueError(f"{PROGRAM_FILE!r} does not name a command and the folder in which to run it")
        return cls(tuple(command), tuple(arguments), folder, bool(facts.get("submitted")))

    def to_json(self) -> dict[str, Any]:
        """What the file holds."""
        return asdict(self)

    @property
    def is_complete(self) -> bool:
        """Whether all arguments were stored."""
        return not any(NOT_STORED in word for word in self.arguments)

    def why_not(self) -> str | None:
        """Why it cannot be run again, and what to do; `None` where it can."""
        if not self.command:
            return (
                "the training was begun in a notebook or a shell. Call `fit` there again, with the same checkpointDir"
            )
        if self.submitted:
            words = " ".join([*self.command[1:], *self.arguments])
            return f"the training was begun by spark-submit. Submit it again as it was: {words}"
        return None


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """The arguments, with `NOT_STORED` for values whose names, or whose own form, tell that they are secrets."""
    kept: list[str] = []
    hides_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hides_next and not word.startswith("-"):
            kept.append(NOT_STORED)
            hides_next = False
            continue
        secret = _SECRET_NAME.search(name) is not None
        hides_next = secret and not equals and word.startswith("-")
        if secret and equals:
            kept.append(f"{name}={NOT_STORED}")
        elif _ADDRESS_WITH_PASSWORD.search(word):
            kept.append(NOT_STORED)
        else:
            kept.append(word)
    return tuple(kept)


def _are_words(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _end_of_command(words: Sequence[str]) -> int:
    """Where the program's own arguments begin in a command line of Python."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        if words[index] == "-m":
            return index + 2
        index += 2 if words[index] in _WITH_VALUE else 1
    return index + 1


def _is_program() -> bool:
    main = sys.modules.get("__main__")
    return bool(getattr(main, "__file__", None)) and not hasattr(sys, "ps1") and not _in_ipython()


def _in_ipython() -> bool:
    """Whether an IPython shell or a notebook's kernel runs here; that it was imported says nothing."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and get_ipython() is not None
