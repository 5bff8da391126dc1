"""The events of one fit, from its start to its end, however often it is launched again. Runs on the driver.

Whoever starts a fit opens this around all of it: a fit has one `Started` and one `Ended`, also where it fails.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from keraunos.errors import JobError
from keraunos.job.training_job import TrainingJob
from keraunos.launch import interrupts
from keraunos.telemetry import notices
from keraunos.telemetry.events import (
    DIVERGED,
    FAILED,
    INTERRUPTED,
    STOPPED,
    TRAINED,
    Ended,
    FitEvent,
    Metrics,
    Resumed,
    Started,
    Warned,
)
from keraunos.telemetry.history import History, HistoryBook
from keraunos.telemetry.stream import EventStream


class FitEvents:
    """Where everything of one fit is published; a context manager that owns the listeners' threads.

    Attributes:
        stream: whose subscribers may come and go.

    Args:
        job: what is trained.
        listeners: see `telemetry.listener.Listener`.
        executors: how many Spark has, where it is Spark that trains.
        slots: how many tasks it can run at once.
    """

    def __init__(
        self, job: TrainingJob, listeners: Sequence[Any] = (), *, executors: int | None = None, slots: int | None = None
    ) -> None:
        self.stream = EventStream(check_listeners(listeners))
        facts = json.loads(json.dumps(job.facts()))
        plan, workers, servers = (facts.pop(name) for name in ("exchange", "workers", "servers"))
        self._started = Started(
            job=facts, plan=plan, workers=workers, servers=str(servers), executors=executors, slots=slots
        )
        self._book = HistoryBook()
        self._launched = False
        self._ended = Ended(how=FAILED)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.enter_context(self.stream)
            self._stack.enter_context(self.stream.attached(self._book.on_event))
            self._stack.enter_context(self.stream.attached(notices.log))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            try:
                if error is None:
                    # A Ctrl-C that is raised later would come behind an event that knows nothing of it.
                    interrupts.check()
            except BaseException as late:
                self._end(late)
                raise
            self._end(error)

    def launched(self, parameters: int, checkpoint: int = 0, epochs: Sequence[Metrics] = ()) -> None:
        """The fit begins with a model of so many parameters, or goes on from a checkpoint with these epochs behind it.

        Called again where it is launched again.
        """
        again, self._launched = self._launched, True
        if not again:
            self._start(parameters)
        if again or checkpoint:
            self.publish(Resumed(checkpoint=checkpoint, epochs=tuple(dict(row) for row in epochs)))

    def publish(self, event: FitEvent) -> None:
        """Tell everyone of an event."""
        self.stream.publish(event)

    def warn(self, message: str) -> None:
        """Tell everyone, and the log, what the user should know."""
        self.publish(Warned(message=message))

    @property
    def epochs(self) -> list[dict[str, float]]:
        """The metrics of the epochs that are over."""
        return self._book.epochs

    def conclude(self, *, ended: str | None, stopped: bool, skipped_rows: int, lost_rows: int) -> History:
        """The training is over; its history. `ended` is why it diverged, `stopped` whether a hook ended it."""
        how = DIVERGED if ended else STOPPED if stopped else TRAINED
        self._ended = Ended(how=how, why=ended, skipped_rows=skipped_rows, lost_rows=lost_rows)
        return History(self.epochs, ended=ended, skipped_rows=skipped_rows, lost_rows=lost_rows)

    def _start(self, parameters: int | None) -> None:
        self.publish(replace(self._started, parameters=parameters))

    def _end(self, error: BaseException | None) -> None:
        if not self._launched:
            self._start(None)
        if error is None:
            self.publish(self._ended)
            return
        how = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
        self.publish(Ended(how=how, why=f"{type(error).__name__}: {error}".removesuffix(": ")))


def check_listeners(listeners: Sequence[Any], name: str = "listeners") -> Sequence[Any]:
    """Refuse what cannot be told of events; `name` is what an error calls it."""
    for each in listeners:
        if not callable(getattr(each, "on_event", None)) or not callable(getattr(each, "close", None)):
            raise JobError(
                f"`{name}` must be objects with `on_event(event)` and `close()`, such as subclasses of "
                f"keraunos.Listener. Received: {each!r}."
            )
    return listeners
