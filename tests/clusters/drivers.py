"""A driver in a process of its own, followed through what it tells; every wait for it has an end."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tests.clusters import processes
from tests.clusters.fit_spec import FitSpec, ProgramSpec, to_line
from tests.clusters.processes import Process
from tests.clusters.standalone import ROOT, StandaloneCluster

# What a fit ends with, one way or another.
ENDS = ("finished", "refused", "interrupted", "failed")


class Gone(Exception):  # noqa: N818 - says what happened
    """The driver ended without telling what was waited for."""


class Driver:
    """One run of `fit_program` on a cluster; `events` is all that it has told so far."""

    def __init__(
        self,
        cluster: StandaloneCluster,
        name: str = "driver",
        settings: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self._cluster = cluster
        self._log = cluster.folder / f"{name}.log"
        self._prefix = prefix
        self._spec = ProgramSpec(cluster.master, cluster.hosts.center, str(cluster.folder), dict(settings or {}))
        self._changed = threading.Condition()
        self._ended = False

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                [*self._prefix, sys.executable, "-m", "tests.clusters.fit_program", to_line(self._spec)],
                cwd=ROOT,
                env=self._cluster.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        process = Process.of(self._popen.pid)
        assert process is not None
        self.process = process
        self._reader = threading.Thread(target=self._read, name="driver-events", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processes.end([self.process])
        self._popen.wait()
        # Its JVM may hold the other end of the pipe for a moment longer.
        self._reader.join(timeout=30)
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    @property
    def log(self) -> str:
        """What the driver and its JVM wrote to stderr."""
        return self._log.read_text(errors="replace")

    def fit(self, spec: FitSpec) -> None:
        """Ask for a fit; it begins when those that were asked for before have ended."""
        self._say(to_line(spec))

    def go_on(self) -> None:
        """Let a driver that holds after an epoch or at a stage go on."""
        self._say("")

    def leave(self, patience: float) -> int:
        """Let the driver stop its Spark and end when it has done what was asked; the exit status."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        return self.wait(patience)

    def told(self, *kinds: str, since: float = 0.0, **facts: Any) -> list[dict[str, Any]]:
        """The events of these kinds with these facts, after a moment of the monotonic clock."""
        with self._changed:
            known = list(self.events)
        wanted = facts.items()
        return [
            each
            for each in known
            if each["event"] in kinds and each["at"] >= since and all(each.get(name) == value for name, value in wanted)
        ]

    def wait_for(self, *kinds: str, patience: float, since: float = 0.0, **facts: Any) -> dict[str, Any]:
        """The first such event; raises TimeoutError when patience ends, and Gone when the driver does."""
        deadline = time.monotonic() + patience
        with self._changed:
            while not (found := self.told(*kinds, since=since, **facts)):
                if self._ended:
                    raise Gone(f"The driver ended without telling {kinds}. The end of its log:\n{self.log[-3000:]}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"The driver did not tell {kinds} within {patience:.0f} s.")
                self._changed.wait(left)
        return found[0]

    def wait(self, patience: float) -> int:
        """The exit status, once the process has ended."""
        try:
            return self._popen.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"The driver did not end within {patience:.0f} s.") from None

    def _say(self, line: str) -> None:
        assert self._popen.stdin is not None
        # One that is gone hears nothing; that it is gone is seen by whoever waits for it.
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(f"{line}\n")
            self._popen.stdin.flush()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # some library's own words
            if isinstance(event, dict) and "event" in event:
                with self._changed:
                    self.events.append(event)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
