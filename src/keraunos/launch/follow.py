"""Following a fit from the driver: joining, progress, laps, hooks, the end. Runs on the driver.

The thread that called `fit` runs this; the server answers workers from its own thread and puts what they report
into a queue. What was launched, Spark tasks or plain processes, is seen only through `Workers`.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import ClusterError, WorkerError
from keraunos.exchange import messages
from keraunos.exchange.client import StateLost
from keraunos.exchange.content import Handlers
from keraunos.exchange.coordination import Arrived, Event, LeftOut, Prepared, StateGiven
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.server import Server
from keraunos.job.course import Course
from keraunos.job.placement import FIRST_SERVER
from keraunos.job.saving import SaveEvery
from keraunos.job.training_job import TrainingJob
from keraunos.launch import readiness
from keraunos.launch.divergence import Divergence, LastGood, SkipBook
from keraunos.launch.hooks import Hooks, Lap
from keraunos.launch.lap_book import ClosedLap, LapBook
from keraunos.launch.part_lost import PartLost
from keraunos.launch.rank_table import LostRows, RankTable
from keraunos.launch.roll_call import RollCall
from keraunos.launch.saver import Known, Resumed, Saver
from keraunos.launch.workers import Workers
from keraunos.learners.home_model import HomeModel
from keraunos.parameters import Vector
from keraunos.telemetry.history import History
from keraunos.telemetry.progress import Progress
from keraunos.worker.failure import raise_failure

logger = logging.getLogger(__name__)

JOIN_SECONDS = 120.0
LOOK_SECONDS = 0.2
_LEAVE_SECONDS = 15.0
_SHOW_SECONDS = 0.5


class Follower:
    """What the driver learns from the workers, message by message."""

    def __init__(
        self,
        job: TrainingJob,
        home: HomeModel,
        server: Server,
        workers: Workers,
        hooks: Sequence[Hooks],
        *,
        verbose: int | str,
        saving: tuple[SaveEvery, CheckpointWriter] | None = None,
        resumed: Resumed | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._home = home
        self._server = server
        self._workers = workers
        self._hooks = hooks
        self._verbose = verbose
        self._clock = clock
        self._joined: dict[int, str] = {}
        self._ready: dict[int, ShardFacts] = {}
        self._left: set[int] = set()
        self._done: set[int] = set()
        self._servers: set[int] = set()
        self._rows_done: dict[int, int] = {}
        self._book = LapBook(job.schedule.first_epoch)
        self._history: list[dict[str, float]] = []
        self._progress: Progress | None = None
        self._last = False
        self._show_next = 0.0
        self._told_left_out = False
        self._look_next = 0.0
        self._started = False
        self.roll = RollCall(job, server, clock)
        self._divergence: Divergence | None = None
        self._skips = SkipBook(job.columns.unchecked_ids)
        self._good = LastGood(job, home, server, self._look)
        self._ended: str | None = None
        self._laps_done: dict[int, int] = {}
        self._resumed = resumed
        self.contributed: dict[int, int] = {}
        self._incarnations: dict[int, int] = {}
        self._decided: messages.Go | None = None
        self._optimizers: dict[int, Sequence[Any]] = {}
        number = 0
        if resumed is not None:
            number = resumed.number
            self._go_on_from(resumed)
        self._saver = None if saving is None else Saver(job, *saving, number, self._know, clock)
        self._handlers = self._registered()

    def _go_on_from(self, resumed: Resumed) -> None:
        facts = resumed.facts
        resumed.restore_book(self._book)
        self._history = [dict(row) for row in History(facts["history"]).epochs]
        self._laps_done = {int(rank): int(laps) for rank, laps in facts["laps_done"]}
        self._rows_done = {int(rank): int(rows) for rank, rows in facts["rows_done"]}
        self._decided = resumed.decided
        self._last = bool(self._decided is not None and self._decided.last)

    def _know(self) -> Known:
        """What is known now, to be saved."""
        facts = {
            "history": [dict(row) for row in self._history],
            "learning_rate": self._home.learning_rate,
            "decided": None if self._decided is None else self._decided.body(),
            "laps_done": sorted(self._laps_done.items()),
            "rows_done": sorted(self._rows_done.items()),
            "steps_traced": sorted(self._server.state.steps_traced.items()),
            "digests": [[rank, facts.digest] for rank, facts in sorted(self._ready.items())],
            "contributed": sorted(self.contributed.items()),
        }
        return Known(facts, self._book.copy(), [each.keep() for each in self._hooks])

    @property
    def ranks(self) -> RankTable:
        """What each rank has done so far."""
        return self.roll.table(lambda rank: self._rows_done.get(rank, 0))

    def run(self) -> History:
        """Follow to the end; the model then has the trained parameters."""
        with Progress.open(None, self._job.schedule.epochs, self._verbose) as progress:
            self._gather()
            self._progress = progress
            self._expect()
            self._begin()
            self._started = True
            while len(self._left | self._done) < self._job.workers and self._divergence is None:
                self._handle(self._next())
            if self._divergence is None:
                self._look()
                vector, broken = self._good.final(self._joined.keys() - self._left)
                self._ended = broken or self._ended
                self._home.write(vector)
                self._settle(good=broken is None)
                self._server.release()
                self._see_off()
            else:
                self._end_early(self._divergence)
        self.contributed = self._server.contributed() or self.contributed
        for each in self._hooks:
            each.end()
        return History(self._history, ended=self._ended, skipped_rows=self._skips.rows, lost_rows=self._rows_lost())

    def _settle(self, *, good: bool) -> None:
        """Give the model the optimizer that its training led to: each worker's is the same, or the lowest rank's.

        Not a `good` one where it led to what is not finite.
        """
        if self._job.keeps_optimizer:
            found = self._optimizers[min(self._optimizers)] if good and self._optimizers else None
            self._home.settle(found)

    def _rows_lost(self) -> int:
        """How many rows of those that were left out nobody has applied."""
        due = {each.rank: each.rows_per_epoch * len(self._history) for each in self.roll.lost_rows}
        return sum(max(0, rows - self.contributed.get(rank, 0)) for rank, rows in due.items())

    def _end_early(self, divergence: Divergence) -> None:
        """End for everyone where a worker has met what is not finite: the last good parameters come home."""
        vector = self._good.before(divergence)
        self._ended = divergence.reason
        lap = self._book.cut(divergence.step)
        self._ask(lap, vector)
        self._history.append(lap.epoch_logs)
        self._home.write(vector)
        self._settle(good=False)
        self._server.stop(divergence.reason)

    def _begin(self) -> None:
        """Let training begin where it begins for all at once."""
        saves = None
        if self._saver is not None and self._job.exchange.synchronous:
            saves = self._saver.begin({rank: facts.rows for rank, facts in self._ready.items()})
        if self._job.needs_all_workers:
            self._server.start(self._ready, saves)

    def _see_off(self, *, to_the_end: bool = False) -> None:
        """Wait until everyone has left; what they had to give is here, so nobody is waited for too long.

        `to_the_end`: until nothing runs any more, and raise what failed. To a worker, rows that Spark fails to compute
        end like rows that are over; Spark tells of it a moment later.
        """
        deadline = self._clock() + _LEAVE_SECONDS
        expected = set(self._joined) | self._servers
        while (to_the_end or not expected <= self._left) and self._clock() < deadline:
            ended = self._workers.ended()
            try:
                self._handle(self._server.events.get(timeout=LOOK_SECONDS))
            except queue.Empty:
                if to_the_end or not ended:
                    self._workers.check()
                if ended:
                    return

    def _gather(self) -> None:
        """Wait until all workers are ready where the plan needs them at once, or else the first; and the servers."""
        deadline = self._clock() + JOIN_SECONDS
        wanted = self._job.workers if self._job.needs_all_workers else 1
        servers = self._job.placement.server_tasks
        while (
            len(self._ready.keys() | self._left) < wanted
            or (not self._ready and len(self._left) < self._job.workers)
            or len(self._servers) < servers
        ):
            late = len(self._joined) < wanted or len(self._servers) < servers
            self._handle(self._next(deadline if late else None))
        if not self._ready:
            self._see_off(to_the_end=True)
            raise readiness.no_rows(self._job)
        readiness.check_all(self._job, self._ready)

    def _expect(self) -> None:
        """Say how much there is to do, as far as it is known: an asynchronous plan's later workers come in between."""
        schedule, workers = self._job.schedule, self._job.workers
        rows = {rank: facts.rows for rank, facts in self._ready.items()}
        total = epochs = 0
        for rank, count in rows.items():
            course = Course.of(self._job, rows, rank)
            step = min(count, schedule.batch_of(rank, workers))
            total += course.rows(schedule.rows_of(count, rank, workers), step)
            epochs = max(epochs, course.epochs)
        if self._progress is not None:
            self._progress.expect(total, epochs)

    def _tell_left_out(self) -> None:
        """Say once, when all ranks are known, how many rows an epoch leaves out."""
        everyone = len(self._ready.keys() | self._left) >= self._job.workers
        if self._job.schedule.remainder == "drop" and everyone and not self._told_left_out:
            self._told_left_out = True
            readiness.tell_left_out(self._job, self._ready)

    def _next(self, deadline: float | None = None) -> Event:
        """The next event; looks after the workers while there is none."""
        while True:
            if self._clock() >= self._look_next:
                self._look()
            try:
                self._save_if_due()
                return self._server.events.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                pass
            self._look()
            if self._workers.ended() and self._server.events.empty():
                if not self._joined:
                    raise readiness.no_rows(self._job)
                raise WorkerError(
                    "The workers ended before the training did. "
                    f"{len(self._joined)} of {self._job.workers} had joined. {self._workers.advice()}"
                )
            late = deadline is not None and self._clock() > deadline
            if late and not self._workers.preparing(JOIN_SECONDS):
                raise ClusterError(
                    f"Only {len(self._joined)} of {self._job.workers} workers came to the driver at "
                    f"{self._server.connection['address']} within {JOIN_SECONDS:.0f} s, and this plan needs all of "
                    f"them at once. {self._workers.advice()}"
                )

    def _look(self) -> None:
        """Look after the workers: what ended them comes first, then who is away."""
        self._look_next = self._clock() + LOOK_SECONDS
        self._workers.check()
        if self._server.events.empty():
            # What ended a thread is an event, with its cause.
            self._server.check()
        hosts = {rank for rank in self._servers | self._joined.keys() if self._job.placement.holds_part(rank)}
        for rank in hosts:
            # Its word that it is back may lie behind what is waited for now, which only the lost one had.
            if self._server.incarnation(rank) > self._incarnations[rank]:
                self._on_return(rank)
        there = (self._joined.keys() - self._done) | hosts
        self.roll.look(there - self._left, self._has_others, self._workers.abandon)

    def _has_others(self, rank: int) -> bool:
        """Whether somebody who has rows trains, or has trained to the end, beside a rank."""
        return bool(self._joined.keys() - (self._left - self._done) - {rank})

    def _on_lost(self, event: Event, left_out: LeftOut) -> None:
        """A rank was left out: from now on nothing is expected of it."""
        rank, schedule = event.rank, self._job.schedule
        self._left.add(rank)
        self._book.forget(rank)
        if self._saver is not None:
            self._saver = None
            logger.warning(
                "The training is not saved any more: it goes on without worker %d, and could not with it.", rank
            )
        shard = self._ready.get(rank) if self._started else self._ready.pop(rank, None)
        rows = schedule.rows_of(shard.rows, rank, self._job.workers) if shard is not None and shard.rows else 0
        lost = LostRows(rank, self._joined[rank], self._book.epoch, rows)
        self.roll.lost_rows.append(lost)
        logger.warning(
            "Worker %d on %s was away for %.0f s, and the training goes on without it (onWorkerLost='continue'). Its "
            "%d rows are missing from epoch %d on.", rank, lost.host, left_out.seconds, rows, lost.epoch + 1,
        )  # fmt: skip
        self._close_laps()

    def _registered(self) -> Handlers[Event, None]:
        handlers: Handlers[Event, None] = Handlers()
        handlers.on(Arrived, self._on_hello)
        handlers.on(Prepared, self._on_ready)
        handlers.on(messages.Report, self._on_report)
        handlers.on(messages.Losses, self._on_losses)
        handlers.on(messages.Lap, self._on_lap)
        handlers.on(StateGiven, self._on_state)
        handlers.on(messages.Missed, self._on_missed)
        handlers.on(messages.Done, self._on_done)
        handlers.on(messages.Bye, self._on_bye)
        handlers.on(messages.Failed, self._on_failed)
        handlers.on(messages.Stacks, self.roll.hear_stacks)
        handlers.on(LeftOut, self._on_lost)
        handlers.on(messages.Diverged, self._on_diverged)
        return handlers

    def _handle(self, event: Event) -> None:
        handler = self._handlers.of(event.kind)
        if handler is not None:
            handler(event, event.said)

    def _on_hello(self, event: Event, arrived: Arrived) -> None:
        if event.rank >= FIRST_SERVER:
            self._servers.add(event.rank)
        self._incarnations[event.rank] = arrived.incarnation
        if arrived.again:
            self._on_return(event.rank)
        readiness.check_versions(arrived.hello)
        if event.rank < FIRST_SERVER:
            self._joined[event.rank] = arrived.hello.host

    def _on_return(self, rank: int) -> None:
        """A rank was lost and has come back; it goes on where it stood, unless parameters went with it."""
        where = self._joined.get(rank, "a host")
        if self._job.placement.holds_part(rank):
            hosts = rank >= FIRST_SERVER
            who = f"Server {rank - FIRST_SERVER}" if hosts else f"Worker {rank} on {where}"
            raise PartLost(
                f"{who} was lost, and with it the part of the parameters that it held. Look for the reason (memory, a "
                f"lost executor) in the executor's log.{self.roll.own_silence()}"
            )
        self.roll.returns[rank] += 1
        self._book.returns(rank)
        logger.warning("Worker %d on %s was lost and has come back; it continues where it stood.", rank, where)

    def _on_ready(self, event: Event, prepared: Prepared) -> None:
        shard = prepared.shard
        if shard is None:
            return
        saved = {} if self._resumed is None else dict(self._resumed.facts["digests"])
        readiness.check_rows(event.rank, prepared, shard, self._ready, saved)
        if self._book.reader is None and shard.spec is not None:
            self._book.reader = self._home.metric_states(shard.spec)
        self._ready[event.rank] = shard
        for each in self._hooks:
            each.on_ready(event.rank, shard.rows)
        self._expect()
        self._tell_left_out()

    def _on_state(self, event: Event, given: StateGiven) -> None:
        if given.last:
            self._optimizers[event.rank] = event.arrays
        elif self._saver is not None:
            self._saver.on_state(event, given, self._server.saves, self._book)

    def _on_missed(self, event: Event, _: messages.Missed) -> None:
        if self._saver is not None:
            self._saver.on_missed(event.round)

    def _save_if_due(self) -> None:
        """Ask for a state to save, where it is time to."""
        round_ = None if self._saver is None else self._saver.due()
        if round_:
            self._server.announce_save(round_)
        elif round_ == 0:
            self._save_slices()

    def _save_slices(self) -> None:
        """Ask slices that have no common rounds for what they are; what the driver knows is of a moment before."""
        if self._saver is not None:
            self._saver.gather(self._server.held())
            self._server.save_slices()

    def _on_report(self, event: Event, report: messages.Report) -> None:
        self._book.measure(event.rank, report, event.arrays)
        self._rows_done[event.rank] = report.rows
        if self._saver is not None:
            self._saver.on_report(event.rank, report.round)
        self._show()

    def _on_losses(self, event: Event, _: messages.Losses) -> None:
        losses, rows = event.arrays[0].T
        for each in self._hooks:
            each.on_losses(event.rank, event.round, losses, rows)

    def _on_lap(self, event: Event, lap: messages.Lap) -> None:
        self._book.end(event.rank, lap, event.arrays[: lap.split], event.arrays[lap.split :])
        self._laps_done[event.rank] = event.round + 1
        self._rows_done[event.rank] = lap.rows
        self._skips.note(event.rank, lap)
        self._close_laps()

    def _on_done(self, event: Event, _: messages.Done) -> None:
        self._done.add(event.rank)
        self._server.retire(event.rank)
        self._close_laps()

    def _on_bye(self, event: Event, bye: messages.Bye) -> None:
        self._left.add(event.rank)
        # What the host of a slice says was contributed to it, now that nobody trains; all slices count alike.
        self.contributed.update(bye.contributed)
        self._tell_left_out()
        self._close_laps()

    def _on_diverged(self, event: Event, found: messages.Diverged) -> None:
        if self._divergence is None:
            self._divergence = Divergence.of(event.rank, self._joined.get(event.rank, "a host"), found)

    def _on_failed(self, event: Event, failure: messages.Failed) -> None:
        self._server.stop(f"worker {event.rank} failed")
        if failure.error == StateLost.__name__:
            raise PartLost(f"{failure.text}{self.roll.own_silence()}")
        raise_failure(event.rank, failure)

    def _close_laps(self) -> None:
        """Close every lap that all ranks that train have reported, until training is to end."""
        while not self._last:
            lap = self._book.close(set(range(self._job.workers)) - self._left - self._done)
            if lap is None:
                return
            self._ended = self._skips.close(lap, self._joined)
            if self._ended is not None:
                lap = lap.unmeasured()
            self._last = self._ask(lap)
            if lap.over or self._last:
                self._history.append(lap.epoch_logs)
            if self._progress is not None:
                self._progress.update(sum(self._rows_done.values()), lap.epoch, lap.epoch_logs)
                if lap.over or self._last:
                    self._progress.epoch_end(lap.epoch, lap.epoch_logs)
            self._decided = messages.Go(lap.number, self._home.learning_rate, self._last)
            self._save_lap(lap)
            self._server.go(lap.number, learning_rate=self._home.learning_rate, last=self._last)

    def _save_lap(self, lap: ClosedLap) -> None:
        if self._saver is None:
            return
        asks = self._saver.on_lap(lap.number + 1, ends_epoch=lap.over, epoch=lap.epoch, slices=self._server.saves)
        if asks:
            self._save_slices()

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
        )
        for each in self._hooks:
            if each.end_lap(lap):
                lap = replace(lap, last=True)
        return lap.last

    def _parameters_of_now(self, vector: Vector | None = None) -> Callable[[], Vector]:
        """What gives the parameters as they are at this meeting; they come home once, whoever asks."""
        found: list[Vector] = [] if vector is None else [vector]

        def parameters() -> Vector:
            if not found:
                found.append(np.array(self._server.parameters(self._look)))
            return found[0].copy()

        return parameters

    def _show(self) -> None:
        if self._progress is not None and self._clock() >= self._show_next:
            self._show_next = self._clock() + _SHOW_SECONDS
            self._progress.update(sum(self._rows_done.values()), self._book.epoch, self._book.so_far())
