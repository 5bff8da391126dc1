"""Following a fit from the driver: joining, progress, laps, hooks, the end. Runs on the driver.

The thread that called `fit` runs this; the server answers workers from its own thread and puts what they report
into a queue. What was launched, Spark tasks or plain processes, is seen only through `Workers`.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import ClusterError, WorkerError
from keraunos.exchange import messages
from keraunos.exchange.client import StateLost
from keraunos.exchange.content import Handlers
from keraunos.exchange.coordination import Arrived, Event, LeftOut, Prepared, StateGiven
from keraunos.exchange.server import Server
from keraunos.job.course import Course
from keraunos.job.placement import FIRST_SERVER
from keraunos.job.saving import SaveEvery
from keraunos.job.training_job import TrainingJob
from keraunos.launch import readiness
from keraunos.launch.divergence import Divergence, LastGood
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.hooks import Hooks
from keraunos.launch.laps import Laps
from keraunos.launch.membership import Membership
from keraunos.launch.part_lost import PartLost
from keraunos.launch.rank_table import LostRows, RankTable
from keraunos.launch.roll_call import RollCall
from keraunos.launch.saver import Known, Resumed
from keraunos.launch.saves import Saves
from keraunos.launch.workers import Workers
from keraunos.learners.home_model import HomeModel
from keraunos.telemetry.events import (
    Expected,
    Progressed,
    RankProgress,
    WorkerJoined,
    WorkerLeftOut,
    WorkerReady,
    WorkerReturned,
)
from keraunos.telemetry.history import History
from keraunos.telemetry.progress import Progress
from keraunos.worker.failure import raise_failure

JOIN_SECONDS = 120.0
LOOK_SECONDS = 0.2
_LEAVE_SECONDS = 15.0
_SHOW_SECONDS = 0.5


class Phase(Enum):
    """Where a fit is."""

    GATHERING = "workers come and read their rows"
    TRAINING = "they train"
    COLLECTING = "what they have trained is fetched"
    ENDING = "they leave"


class Follower:
    """What the driver learns from the workers, message by message, phase by phase."""

    def __init__(
        self,
        job: TrainingJob,
        home: HomeModel,
        server: Server,
        workers: Workers,
        hooks: Sequence[Hooks],
        events: FitEvents,
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
        self._events = events
        self._verbose = verbose
        self._clock = clock
        self._phase = Phase.GATHERING
        self._members = Membership(job)
        self._laps = Laps(job, home, server, hooks, self._members, events, self._look)
        self._saved_digests: dict[int, str] = {} if resumed is None else dict(resumed.facts["digests"])
        if resumed is not None:
            self._laps.go_on_from(resumed)
        self._saves = Saves(job, server, saving, 0 if resumed is None else resumed.number, self._know, clock)
        self._good = LastGood(job, home, server, events, self._look)
        self._divergence: Divergence | None = None
        self._optimizers: dict[int, Sequence[Any]] = {}
        self._told_left_out = False
        self._show_next = 0.0
        self._look_next = 0.0
        # How many events were there when a thread of the server was found dead: one of them may say why.
        self._ahead_of_end: int | None = None
        self.roll = RollCall(job, server, events, clock)
        self.contributed: dict[int, int] = {}
        self._handlers = self._registered()

    def _know(self) -> Known:
        """What is known now, to be saved."""
        facts = {
            **self._laps.facts(),
            "history": [dict(row) for row in self._events.epochs],
            "learning_rate": self._home.learning_rate,
            "steps_traced": sorted(self._server.state.steps_traced.items()),
            "digests": [[rank, shard.digest] for rank, shard in sorted(self._members.ready.items())],
            "contributed": sorted(self.contributed.items()),
        }
        return Known(facts, self._laps.book.copy(), [each.keep() for each in self._hooks])

    @property
    def ranks(self) -> RankTable:
        """What each rank has done so far."""
        return self.roll.table(lambda rank: self._laps.rows_done.get(rank, 0))

    def run(self) -> History:
        """Follow to the end; the model then has the trained parameters."""
        with Progress.open(None, self._job.schedule.epochs, self._verbose) as progress:
            self._gather()
            with self._events.stream.attached(progress.on_event):
                self._train()
                broken = self._collect()
                self._end()
        self.contributed = self._server.contributed() or self.contributed
        for each in self._hooks:
            each.end()
        return self._events.conclude(
            ended=broken or self._laps.ended,
            stopped=self._laps.stopped,
            skipped_rows=self._laps.skipped_rows,
            lost_rows=self._rows_lost(),
        )

    def _gather(self) -> None:
        """Wait until all workers are ready where the plan needs them at once, or else the first; and the servers."""
        deadline = self._clock() + JOIN_SECONDS
        wanted = self._job.workers if self._job.needs_all_workers else 1
        members = self._members
        while (
            members.settled < wanted or (not members.ready and not members.nobody_can_train) or members.servers_missing
        ):
            late = len(members.hosts) < wanted or members.servers_missing
            self._handle(self._next(deadline if late else None))
        if not members.ready:
            self._see_off(to_the_end=True)
            raise readiness.no_rows(self._job)
        readiness.check_all(self._job, members.ready, self._events.warn)

    def _train(self) -> None:
        """Let training begin where it begins for all at once, and follow it until nobody trains any more."""
        self._expect()
        saves = self._saves.begin(self._members.rows())
        if self._job.needs_all_workers:
            self._server.start(self._members.ready, saves)
        self._phase = Phase.TRAINING
        while not self._members.all_trained and self._divergence is None:
            self._handle(self._next())

    def _collect(self) -> str | None:
        """Give the model the parameters and the optimizer that its training led to, the last good ones at least.

        What is wrong with those of the end, where they had to be replaced.
        """
        self._phase = Phase.COLLECTING
        if self._divergence is not None:
            vector, broken = self._good.before(self._divergence), None
            self._laps.end_early(self._divergence, vector)
        else:
            self._look()
            vector, broken = self._good.final(self._members.present)
        self._home.write(vector)
        if self._job.keeps_optimizer:
            # Each worker's is the same, or the lowest rank's is taken; none where it led to what is not finite.
            good = self._divergence is None and broken is None
            self._home.settle(self._optimizers[min(self._optimizers)] if good and self._optimizers else None)
        return broken

    def _end(self) -> None:
        """Let everyone leave."""
        self._phase = Phase.ENDING
        if self._divergence is not None:
            self._server.stop(self._divergence.reason)
            return
        self._server.release()
        self._see_off()

    def _see_off(self, *, to_the_end: bool = False) -> None:
        """Wait until everyone has left; what they had to give is here, so nobody is waited for too long.

        `to_the_end`: until nothing runs any more, and raise what failed. To a worker, rows that Spark fails to compute
        end like rows that are over; Spark tells of it a moment later.
        """
        deadline = self._clock() + _LEAVE_SECONDS
        expected = self._members.everyone
        while (to_the_end or not expected <= self._members.left) and self._clock() < deadline:
            ended = self._workers.ended()
            try:
                self._handle(self._server.events.get(timeout=LOOK_SECONDS))
            except queue.Empty:
                if to_the_end or not ended:
                    self._workers.check()
                if ended:
                    return

    def _next(self, deadline: float | None = None) -> Event:
        """The next event; looks after the workers while there is none."""
        while True:
            if self._clock() >= self._look_next:
                self._look()
            try:
                self._saves.ask_if_due()
                return self._server.events.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                pass
            self._look()
            joined = len(self._members.hosts)
            if self._workers.ended() and self._server.events.empty():
                if not joined:
                    raise readiness.no_rows(self._job)
                raise WorkerError(
                    "The workers ended before the training did. "
                    f"{joined} of {self._job.workers} had joined. {self._workers.advice()}"
                )
            late = deadline is not None and self._clock() > deadline
            if late and not self._workers.preparing(JOIN_SECONDS):
                raise ClusterError(
                    f"Only {joined} of {self._job.workers} workers came to the driver at "
                    f"{self._server.connection['address']} within {JOIN_SECONDS:.0f} s, and this plan needs all of "
                    f"them at once. {self._workers.advice()}"
                )

    def _look(self) -> None:
        """Look after the workers: what ended them comes first, then who is away."""
        self._look_next = self._clock() + LOOK_SECONDS
        self._workers.check()
        if self._ahead_of_end is None and not self._server.serves:
            self._ahead_of_end = self._server.events.qsize()
        if self._ahead_of_end == 0:
            self._server.check()
        for rank in self._members.holders:
            # Its word that it is back may lie behind what is waited for now, which only the lost one had.
            if self._members.has_returned(rank, self._server.incarnation(rank)):
                self._on_return(rank)
        self.roll.look(self._members.expected, self._members.has_others, self._workers.abandon)

    def _registered(self) -> Handlers[Event, None]:
        handlers: Handlers[Event, None] = Handlers()
        handlers.on(Arrived, self._on_hello)
        handlers.on(Prepared, self._on_ready)
        handlers.on(messages.Report, self._on_report)
        handlers.on(messages.Losses, self._on_losses)
        handlers.on(messages.Lap, self._on_lap)
        handlers.on(StateGiven, self._on_state)
        handlers.on(messages.Missed, self._saves.on_missed)
        handlers.on(messages.Done, self._on_done)
        handlers.on(messages.Bye, self._on_bye)
        handlers.on(messages.Failed, self._on_failed)
        handlers.on(messages.Stacks, self.roll.hear_stacks)
        handlers.on(LeftOut, self._on_lost)
        handlers.on(messages.Diverged, self._on_diverged)
        return handlers

    def _handle(self, event: Event) -> None:
        if self._ahead_of_end:
            self._ahead_of_end -= 1
        handler = self._handlers.of(event.kind)
        if handler is not None:
            handler(event, event.said)

    def _on_hello(self, event: Event, arrived: Arrived) -> None:
        self._members.begin(event.rank, arrived.incarnation)
        if arrived.again:
            self._on_return(event.rank)
        readiness.check_versions(arrived.hello)
        if event.rank < FIRST_SERVER:
            self._members.join(event.rank, arrived.hello.host)
            self._events.publish(WorkerJoined(rank=event.rank, host=self._members.host(event.rank)))

    def _on_return(self, rank: int) -> None:
        """A rank was lost and has come back; it goes on where it stood, unless parameters went with it."""
        host = self._members.host(rank)
        if self._job.placement.holds_part(rank):
            who = f"Server {rank - FIRST_SERVER}" if rank >= FIRST_SERVER else f"Worker {rank} on {host}"
            raise PartLost(
                f"{who} was lost, and with it the part of the parameters that it held. Look for the reason (memory, a "
                f"lost executor) in the executor's log.{self.roll.own_silence()}"
            )
        self.roll.returns[rank] += 1
        self._laps.book.returns(rank)
        said = f"Worker {rank} on {host} was lost and has come back; it continues where it stood."
        self._events.publish(WorkerReturned(rank=rank, host=host, message=said))

    def _on_ready(self, event: Event, prepared: Prepared) -> None:
        shard, rank = prepared.shard, event.rank
        if shard is None:
            return
        readiness.check_rows(rank, prepared, shard, self._members.ready, self._saved_digests)
        if self._laps.book.reader is None and shard.spec is not None:
            self._laps.book.reader = self._home.metric_states(shard.spec)
        self._members.ready[rank] = shard
        for each in self._hooks:
            each.on_ready(rank, shard.rows)
        host = self._members.host(rank)
        self._events.publish(WorkerReady(rank=rank, host=host, rows=shard.rows, validation_rows=shard.validation_rows))
        if self._phase is not Phase.GATHERING:
            self._expect()
        self._tell_left_out()

    def _on_report(self, event: Event, report: messages.Report) -> None:
        self._laps.on_report(event, report)
        self._saves.on_report(event.rank, report.round)
        self._show()

    def _on_losses(self, event: Event, _: messages.Losses) -> None:
        losses, rows = event.arrays[0].T
        for each in self._hooks:
            each.on_losses(event.rank, event.round, losses, rows)

    def _on_lap(self, event: Event, lap: messages.Lap) -> None:
        self._laps.on_lap(event, lap)
        self._laps.close(self._saves)

    def _on_state(self, event: Event, given: StateGiven) -> None:
        if given.last:
            self._optimizers[event.rank] = event.arrays
        else:
            self._saves.on_state(event, given, self._laps.book)

    def _on_done(self, event: Event, _: messages.Done) -> None:
        self._members.finish(event.rank)
        self._server.retire(event.rank)
        self._laps.close(self._saves)

    def _on_bye(self, event: Event, bye: messages.Bye) -> None:
        self._members.leave(event.rank)
        # What the host of a slice says was contributed to it, now that nobody trains; all slices count alike.
        self.contributed.update(bye.contributed)
        self._tell_left_out()
        self._laps.close(self._saves)

    def _on_lost(self, event: Event, left_out: LeftOut) -> None:
        """A rank was left out: from now on nothing is expected of it."""
        rank, schedule, members = event.rank, self._job.schedule, self._members
        members.leave(rank)
        self._laps.book.forget(rank)
        if self._saves.give_up():
            self._events.warn(
                f"The training is not saved any more: it goes on without worker {rank}, and could not with it."
            )
        shard = members.ready.get(rank)
        if self._phase is Phase.GATHERING:
            members.ready.pop(rank, None)
        rows = schedule.rows_of(shard.rows, rank, self._job.workers) if shard is not None and shard.rows else 0
        lost = LostRows(rank, members.hosts[rank], self._laps.book.epoch, rows)
        self.roll.lost_rows.append(lost)
        said = (
            f"Worker {rank} on {lost.host} was away for {left_out.seconds:.0f} s, and the training goes on "
            f"without it (onWorkerLost='continue'). Its {rows} rows are missing from epoch {lost.epoch + 1} on."
        )
        self._events.publish(WorkerLeftOut(rank=rank, host=lost.host, epoch=lost.epoch, rows=rows, message=said))
        self._laps.close(self._saves)

    def _on_diverged(self, event: Event, found: messages.Diverged) -> None:
        if self._divergence is None:
            self._divergence = Divergence.of(event.rank, self._members.host(event.rank), found)

    def _on_failed(self, event: Event, failure: messages.Failed) -> None:
        self._server.stop(f"worker {event.rank} failed")
        if failure.error == StateLost.__name__:
            raise PartLost(f"{failure.text}{self.roll.own_silence()}")
        raise_failure(event.rank, failure)

    def _expect(self) -> None:
        """Say how much there is to do, as far as it is known: an asynchronous plan's later workers come in between."""
        schedule, workers = self._job.schedule, self._job.workers
        rows = self._members.rows()
        total = epochs = 0
        for rank, count in rows.items():
            course = Course.of(self._job, rows, rank)
            step = min(count, schedule.batch_of(rank, workers))
            total += course.rows(schedule.rows_of(count, rank, workers), step)
            epochs = max(epochs, course.epochs)
        self._events.publish(Expected(rows=total, epochs=epochs))

    def _tell_left_out(self) -> None:
        """Say once, when all ranks are known, how many rows an epoch leaves out."""
        everyone = self._members.settled >= self._job.workers
        if self._job.schedule.remainder == "drop" and everyone and not self._told_left_out:
            self._told_left_out = True
            readiness.tell_left_out(self._job, self._members.ready, self._events.warn)

    def _show(self) -> None:
        """Tell how far everyone is, unless it was told just before."""
        if self._phase is Phase.GATHERING or self._clock() < self._show_next:
            return
        self._show_next = self._clock() + _SHOW_SECONDS
        ranks = tuple(
            RankProgress(
                each.rank, each.host, each.rows, each.steps, each.seconds_per_step, each.waiting,
                each.bytes_sent, each.bytes_received, each.bytes_shared, self._staleness(each.rank),
            )
            for each in self.ranks
        )  # fmt: skip
        rows, book = sum(self._laps.rows_done.values()), self._laps.book
        self._events.publish(Progressed(epoch=book.epoch, rows=rows, metrics=book.so_far(), ranks=ranks))

    def _staleness(self, rank: int) -> int | None:
        """That of a rank's last contribution. Under `hogwild` several servers of one slice count, each for itself."""
        tally = self._server.tally(rank)
        return tally.staleness if tally and self._job.exchange.meet in {"asynchronous", "bounded"} else None

    def _rows_lost(self) -> int:
        """How many rows of those that were left out nobody has applied."""
        due = {each.rank: each.rows_per_epoch * len(self._events.epochs) for each in self.roll.lost_rows}
        return sum(max(0, rows - self.contributed.get(rank, 0)) for rank, rows in due.items())
