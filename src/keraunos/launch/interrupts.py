"""Ctrl-C during a fit: raised where nothing is half made or half ended. Runs on the driver.

Python raises `KeyboardInterrupt` between any two instructions: after the start of a thread and before anybody has noted
it, within the clean-up after a first one, or while an answer of the JVM is on its way, which the next question would
then take for its own. So a fit in the main thread only notes the signal, and raises at points of its own choice: while
it waits, which it never does for longer than some tenths of a second, and when all that it had made is gone.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

# Who presses Ctrl-C again after so many seconds wants an end at once, whatever is left behind.
INSISTS_SECONDS = 5.0

_current: Interrupts | None = None


class Interrupts:
    """Notes SIGINT while it is entered; `check` and leaving raise what was noted. Does nothing outside the main thread.

    A handler of the user's own is called in place of raising, at the same points. Where SIGINT is ignored it stays so.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: Any = None
        self._outer: Interrupts | None = None
        self._noted_at: float | None = None
        self._raised = False
        self._open = 0

    def __enter__(self) -> Self:
        global _current
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._outer, _current = _current, self
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _current  # noqa: PLW0603 - as above
        if self._before is None:
            return
        _current = self._outer
        signal.signal(signal.SIGINT, self._before)
        if not isinstance(error, KeyboardInterrupt):
            self.check()

    def check(self) -> None:
        """Raise what was noted, once."""
        if self._noted_at is not None and not self._raised:
            self._raised = True
            self._pass_on(None)
            # A handler that did not raise has heard of this one.
            self._raised, self._noted_at = False, None

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Raise at once in here: for code of the user's, which may run for long and keeps its own order."""
        self.check()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = self._clock()
        insists = self._noted_at is not None and now - self._noted_at > INSISTS_SECONDS
        if self._noted_at is None:
            self._noted_at = now
        if insists:
            self._pass_on(frame)
        elif self._open and not self._raised:
            self._raised = True
            self._pass_on(frame)

    def _pass_on(self, frame: FrameType | None) -> None:
        """Do what SIGINT did before. PySpark's own handler is left out: it cancels the session's jobs, all of them."""
        if getattr(self._before, "__module__", "").startswith("pyspark."):
            raise KeyboardInterrupt
        self._before(signal.SIGINT, frame)


def check() -> None:
    """Raise what the fit in this thread has noted."""
    if _current is not None and threading.current_thread() is threading.main_thread():
        _current.check()


@contextmanager
def allowed() -> Iterator[None]:
    """Let Ctrl-C break code of the user's at once."""
    if _current is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _current.allowed():
        yield
