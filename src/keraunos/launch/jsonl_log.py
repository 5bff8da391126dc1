"""A fit's events as a file, one JSON object a line, and read again. Runs on the driver.

On this machine each line is in the file as soon as its event was told. Other file systems cannot add to a file: there
all of it is written again, now and then when an epoch is over, and when the fit is.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from keraunos.errors import DataError
from keraunos.launch.given_paths import GivenPath, given_path
from keraunos.telemetry.events import EpochClosed, FitEvent, event_from_json
from keraunos.telemetry.listener import Listener

_WRITE_SECONDS = 30.0


class JsonlLog(Listener):
    """Writes every event to a file, behind what is there already: `JsonlLog("fit.jsonl")`.

    The path may have any scheme that Hadoop knows. `read_log` reads the file.
    """

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._path = given_path(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._text: str | None = None
        self._next_write = clock() + _WRITE_SECONDS

    def __repr__(self) -> str:
        return f"JsonlLog({self._path.text!r})"

    def on_event(self, event: FitEvent) -> None:
        """Write a line."""
        line = json.dumps(event.to_json(), ensure_ascii=False, allow_nan=False) + "\n"
        with self._lock:
            if self._path.local_path is None:
                self._text = (_text(self._path) if self._text is None else self._text) + line
                if isinstance(event, EpochClosed) and self._clock() >= self._next_write:
                    self._write()
                return
            if self._file is None:
                self._file = _opened(self._path.local_path)
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """Leave the file whole; another fit goes on behind it."""
        with self._lock:
            if self._text is not None:
                self._write()
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self) -> None:
        self._path.replace((self._text or "").encode())
        self._next_write = self._clock() + _WRITE_SECONDS


def read_log(path: str | os.PathLike[str]) -> list[FitEvent]:
    """The events that `JsonlLog` has written, of all fits in the order of its lines.

    A last line that was cut off, because its writer was killed, is left out.
    """
    given = given_path(path)
    if not given.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), given.text)
    found = []
    for number, line in enumerate(_text(given).split("\n")[:-1], start=1):
        try:
            found.append(event_from_json(json.loads(line)))
        except (AttributeError, ValueError) as error:
            raise DataError(
                f"`path` must be a file that JsonlLog wrote. Received: {given.text!r}, whose line {number} is no event "
                f"({error})."
            ) from error
    return found


def _text(path: GivenPath) -> str:
    """What the file has, without a last line that was cut off."""
    return "".join(path.read().decode().rpartition("\n")[:2]) if path.exists() else ""


def _opened(path: Path) -> IO[str]:
    """The file to add lines to, without a last line that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b")
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
    return TextIOWrapper(file, encoding="utf-8")
