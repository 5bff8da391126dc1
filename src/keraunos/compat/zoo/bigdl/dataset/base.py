"""`bigdl.dataset.base`: where the files of data sets are, and a progress bar. Runs on the driver."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keraunos.errors import JobError

__all__ = ["Progbar", "display_table", "maybe_download"]


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """Returns the path of a file that is in a folder already; one that is not there is not downloaded."""
    path = Path(work_directory, filename)
    if not path.is_file():
        raise JobError(
            f"The file {filename!r} must be in the folder {str(work_directory)!r}. Received: "
            f"{'a folder without it' if Path(work_directory).is_dir() else 'no such folder'}. Download it from "
            f"{source_url} and put it there; Keraunos downloads nothing."
        )
    return str(path)


class Progbar:
    """A line that shows progress."""

    def __init__(self, target: int, width: int = 30, verbose: int = 1, interval: float = 0.01) -> None:
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.seen_so_far = 0
        self._sums: dict[str, tuple[float, float]] = {}
        self._shown = float("-inf")

    def update(self, current: int, values: Sequence[tuple[str, float]] = (), force: bool = False) -> None:
        """Say that `current` steps are done; `values` are shown as means over the steps."""
        steps = current - self.seen_so_far
        for name, value in values:
            total, counted = self._sums.get(name, (0.0, 0.0))
            self._sums[name] = (total + value * steps, counted + steps)
        self.seen_so_far = current
        now, ended = time.monotonic(), current >= self.target
        if self.verbose == 0 or not (force or ended or now - self._shown >= self.interval):
            return
        if self.verbose == 2 and not ended:
            return
        self._shown = now
        done = int(self.width * min(current, self.target) / max(1, self.target))
        bar = "=" * done + "." * (self.width - done)
        means = "".join(f" - {name}: {total / max(1.0, counted):.4f}" for name, (total, counted) in self._sums.items())
        sys.stdout.write(f"\r{current}/{self.target} [{bar}]{means}" + ("\n" if ended else ""))
        sys.stdout.flush()

    def add(self, n: int, values: Sequence[tuple[str, float]] = ()) -> None:
        """Say that `n` more steps are done."""
        self.update(self.seen_so_far + n, values)


def display_table(rows: Sequence[Sequence[Any]], positions: Sequence[int]) -> None:
    """Write rows as columns that end at the given positions."""
    for row in rows:
        line = ""
        for value, end in zip(row, positions, strict=False):
            line = f"{line}{value}"[:end].ljust(end)
        sys.stdout.write(line + "\n")
