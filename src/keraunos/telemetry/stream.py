"""The stream of the events of one fit. Runs on the driver.

Subscribers are called at once, by the thread that publishes: parts of the fit itself, such as its history and the
display of its progress. Listeners have a queue and a thread each.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from keraunos.telemetry.events import Ended, FitEvent

logger = logging.getLogger(__name__)

# Enough for some minutes of a large fit.
QUEUE_LENGTH = 10_000
LEAVE_SECONDS = 5.0


class EventStream:
    """Publishes the events of a fit; a context manager that owns the listeners' threads.

    Args:
        listeners: see `Listener`.
        queue_length: the maximum number of queued events per listener.
        leave_seconds: how long leaving the context waits for all listeners together.
        clock: returns the time of an event.
    """

    def __init__(
        self,
        listeners: Sequence[Any] = (),
        *,
        queue_length: int = QUEUE_LENGTH,
        leave_seconds: float = LEAVE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.fit = uuid.uuid4().hex
        self._clock = clock
        self._leave_seconds = leave_seconds
        self._attached: list[Callable[[FitEvent], None]] = []
        self._posts = [_Post(each, queue_length) for each in listeners]
        self._over = False
        # The thread that writes checkpoints publishes, too.
        self._order = threading.RLock()

    def __enter__(self) -> Self:
        for post in self._posts:
            post.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for post in self._posts:
            post.close()
        deadline = time.monotonic() + self._leave_seconds
        for post in self._posts:
            post.leave(max(0.0, deadline - time.monotonic()))

    @contextmanager
    def attached(self, subscriber: Callable[[FitEvent], None]) -> Iterator[None]:
        """Call a subscriber with every event at once; its exceptions reach the publisher."""
        self._attached.append(subscriber)
        try:
            yield
        finally:
            self._attached.remove(subscriber)

    def publish(self, event: FitEvent) -> None:
        """Publish an event to all, in one order."""
        with self._order:
            if self._over:
                # A thread that was not waited for publishes after the end.
                return
            self._over = isinstance(event, Ended)
            stamped = replace(event, fit=self.fit, time=self._clock())
            for subscriber in tuple(self._attached):
                subscriber(stamped)
            for post in self._posts:
                post.put(stamped)

    @property
    def unheard(self) -> list[tuple[int, int]]:
        """How many events each listener has missed, and how often it has raised."""
        return [(post.dropped, post.raised) for post in self._posts]


class _Post:
    """One listener's queue and thread."""

    def __init__(self, listener: Any, length: int) -> None:
        self.dropped = 0
        self.raised = 0
        self._listener = listener
        self._length = length
        self._waiting: deque[FitEvent] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._told = False
        self._thread = threading.Thread(target=self._run, name="keraunos-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, event: FitEvent) -> None:
        with self._changed:
            if len(self._waiting) >= self._length and not isinstance(event, Ended):
                self.dropped += 1
            else:
                self._waiting.append(event)
                self._changed.notify()
        if self.dropped:
            self._tell("is slow, and more than %d events wait for it: further ones are dropped.", self._length)

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()

    def leave(self, seconds: float) -> None:
        """Wait for a limited time until it has received all events."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._tell("has not received all events some seconds after the fit's end; the fit does not wait longer.")

    def _run(self) -> None:
        while (event := self._next()) is not None:
            self._call(self._listener.on_event, event)
        self._call(self._listener.close)

    def _next(self) -> FitEvent | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting.popleft() if self._waiting else None

    def _call(self, method: Callable[..., None], *arguments: FitEvent) -> None:
        try:
            method(*arguments)
        except BaseException as error:  # noqa: BLE001 - whatever it is, training goes on
            self.raised += 1
            self._tell("has raised %r. It still receives later events; further exceptions are only counted.", error)

    def _tell(self, text: str, *values: object) -> None:
        """Name the listener in a warning, once."""
        if not self._told:
            self._told = True
            logger.warning(f"The listener %r {text} Training continues.", self._listener, *values)  # noqa: G004
