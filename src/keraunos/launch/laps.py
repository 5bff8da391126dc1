"""Closing laps: metrics are entered, hooks are asked, and the workers are told to go on. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keraunos.exchange import messages
from keraunos.exchange.coordination import Event
from keraunos.exchange.server import Server
from keraunos.job.training_job import TrainingJob
from keraunos.launch.divergence import Divergence, SkipBook
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.hooks import Hooks, Lap
from keraunos.launch.lap_book import ClosedLap, LapBook
from keraunos.launch.membership import Membership
from keraunos.launch.saver import Resumed
from keraunos.launch.saves import Saves
from keraunos.learners.home_model import HomeModel
from keraunos.parameters import Vector
from keraunos.telemetry.events import EpochClosed, LapClosed


class Laps:
    """The laps of one fit.

    Attributes:
        book: what was reported of laps that are open.
        rows_done: how many rows each rank has read.
        ended: why training ended before its schedule did, where numbers were not finite.
        stopped: whether a hook ended it.
        skipped_rows: how many rows were skipped.
    """

    def __init__(
        self,
        job: TrainingJob,
        home: HomeModel,
        server: Server,
        hooks: Sequence[Hooks],
        members: Membership,
        events: FitEvents,
        look: Callable[[], None],
    ) -> None:
        self.book = LapBook(job.schedule.first_epoch)
        self.rows_done: dict[int, int] = {}
        self.ended: str | None = None
        self.stopped = False
        self._home = home
        self._server = server
        self._hooks = hooks
        self._members = members
        self._events = events
        self._look = look
        self._skips = SkipBook(events, job.columns.unchecked_ids)
        self._laps_done: dict[int, int] = {}
        self._decided: messages.Go | None = None
        self._last = False

    @property
    def skipped_rows(self) -> int:
        """How many rows were skipped because what they led to was not finite."""
        return self._skips.rows

    def go_on_from(self, resumed: Resumed) -> None:
        """Be where a saved training was."""
        resumed.restore_book(self.book)
        self._laps_done = {int(rank): int(laps) for rank, laps in resumed.facts["laps_done"]}
        self.rows_done = {int(rank): int(rows) for rank, rows in resumed.facts["rows_done"]}
        self._decided = resumed.decided
        self._last = bool(self._decided is not None and self._decided.last)

    def facts(self) -> dict[str, Any]:
        """What is saved of it, but for the book."""
        return {
            "decided": None if self._decided is None else self._decided.body(),
            "laps_done": sorted(self._laps_done.items()),
            "rows_done": sorted(self.rows_done.items()),
        }

    def on_report(self, event: Event, report: messages.Report) -> None:
        """A rank has measured something on its way through a lap."""
        self.book.measure(event.rank, report, event.arrays)
        self.rows_done[event.rank] = report.rows

    def on_lap(self, event: Event, lap: messages.Lap) -> None:
        """A rank has ended a lap."""
        self.book.end(event.rank, lap, event.arrays[: lap.split], event.arrays[lap.split :])
        self._laps_done[event.rank] = event.round + 1
        self.rows_done[event.rank] = lap.rows
        self._skips.note(event.rank, lap)

    def close(self, saves: Saves) -> None:
        """Close every lap that all ranks that train have reported, until training is to end."""
        while not self._last:
            lap = self.book.close(self._members.training)
            if lap is None:
                return
            self.ended = self._skips.close(lap, self._members.hosts)
            if self.ended is not None:
                lap = lap.unmeasured()
            self._last = self._ask(lap)
            self._tell(lap)
            self._decided = messages.Go(lap.number, self._home.learning_rate, self._last)
            saves.on_lap(lap)
            self._server.go(lap.number, learning_rate=self._home.learning_rate, last=self._last)

    def end_early(self, divergence: Divergence, vector: Vector) -> None:
        """End where a worker has met what is not finite; the open lap is the last, with these parameters."""
        self.ended = divergence.reason
        lap = self.book.cut(divergence.step)
        self._ask(lap, vector)
        self._events.publish(EpochClosed(epoch=lap.epoch, metrics=dict(lap.epoch_logs), diverged=True))

    def _tell(self, lap: ClosedLap) -> None:
        self._events.publish(
            LapClosed(
                epoch=lap.epoch,
                step=lap.step,
                rows=sum(self.rows_done.values()),
                metrics=dict(lap.logs),
                epoch_metrics=dict(lap.epoch_logs),
                last=self._last,
            )
        )
        if lap.over or self._last:
            self._events.publish(EpochClosed(epoch=lap.epoch, metrics=dict(lap.epoch_logs)))

    def _ask(self, closed: ClosedLap, vector: Vector | None = None) -> bool:
        """Tell the hooks that a lap ended, with these parameters or those of now; whether it was the last."""
        lap = Lap(
            epoch=closed.epoch,
            step=closed.step,
            ends_epoch=closed.ends_epoch,
            logs=closed.logs,
            epoch_logs=closed.epoch_logs,
            last=closed.last,
            parameters=self._parameters_of_now(vector),
            rule=self._server.rule,
        )
        for each in self._hooks:
            if each.end_lap(lap):
                lap = replace(lap, last=True)
        self.stopped = lap.last and not closed.last
        return lap.last

    def _parameters_of_now(self, vector: Vector | None = None) -> Callable[[], Vector]:
        """A function that returns the parameters of this moment; they are fetched at its first call."""
        found: list[Vector] = [] if vector is None else [vector]

        def parameters() -> Vector:
            if not found:
                found.append(np.array(self._server.parameters(self._look)))
            return found[0].copy()

        return parameters
