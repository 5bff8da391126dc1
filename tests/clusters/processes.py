"""Processes as Linux shows them: found by a mark in their environment, told apart, ended and seen to be gone.

Whoever starts a process gives it an environment variable with a value of its own; all that the process starts inherit
it, also where their parent dies and they belong to nobody. A process is known by its number and the time of its start,
because numbers are used again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

MARK = "KERAUNOS_CLUSTER"

Found = TypeVar("Found")


@dataclass(frozen=True)
class Process:
    """One process, of which there was never another with this number and this start."""

    pid: int
    start: int
    parent: int
    name: str
    command: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process of that number, unless it has ended; one that nobody has waited for yet has ended."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return None
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        if fields[0] in {"Z", "X"}:
            return None
        return cls(pid, int(fields[19]), int(fields[1]), head.partition("(")[2], command)

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        now = Process.of(self.pid)
        return now is not None and now.start == self.start

    def send(self, number: signal.Signals) -> bool:
        """Send a signal; whether there was somebody to get it."""
        if not self.lives:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False

    def __str__(self) -> str:
        return f"{self.pid} {self.name}: {self.command[:160]}"


def marked(mark: str) -> list[Process]:
    """All processes whose environment has the mark, oldest first."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended while it was looked at, or belongs to somebody else
        if wanted in variables:
            process = Process.of(int(folder.name))
            if process is not None:
                found.append(process)
    return sorted(found, key=lambda each: each.start)


def below(ancestor: Process, among: Iterable[Process]) -> list[Process]:
    """The children of a process, their children, and so on."""
    everyone = list(among)
    found: list[Process] = []
    parents = {ancestor.pid}
    while parents:
        children = [each for each in everyone if each.parent in parents]
        found += children
        parents = {each.pid for each in children}
    return found


def end(processes: Iterable[Process], *, patience: float = 10.0) -> list[Process]:
    """Ask processes to end, then make them; those that live even so."""
    left = list(processes)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for each in left:
            # One that was stopped would get nothing else.
            each.send(signal.SIGCONT)
            each.send(number)
        left = await_gone(left, patience)
    return left


def await_gone(processes: Iterable[Process], patience: float) -> list[Process]:
    """Wait until none of them lives; those that do when patience ends."""
    left = list(processes)
    for _ in ticks(patience):
        left = [each for each in left if each.lives]
        if not left:
            break
    return left


def until(condition: Callable[[], Found | None], patience: float, what: str) -> Found:
    """What `condition` gives once it gives something; it is asked again and again until patience ends."""
    for _ in ticks(patience):
        found = condition()
        if found is not None and found is not False:
            return found
    raise TimeoutError(f"{what} did not come about within {patience:.0f} s.")


def ticks(patience: float, pause: float = 0.05) -> Iterator[float]:
    """Moments, at least one, until patience ends; gives the seconds that have passed."""
    began = time.monotonic()
    nobody = threading.Event()
    while True:
        passed = time.monotonic() - began
        yield passed
        if passed > patience:
            return
        nobody.wait(pause)
