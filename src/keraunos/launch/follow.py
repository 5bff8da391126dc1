"""Following a fit from the driver: joining, progress, laps, hooks, the end. Runs on the driver.

The thread that called `fit` runs this; the server answers workers from its own thread and puts what they report
into a queue. What was launched, Spark tasks or plain processes, is seen only through `Workers`.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from keraunos.batch import BatchSpec
from keraunos.errors import ClusterError, DataError, JobError, WorkerError
from keraunos.exchange.coordinator_state import FIRST_SERVER, Event
from keraunos.exchange.server import Server
from keraunos.exchange.wire import Kind
from keraunos.job.course import Course
from keraunos.job.training_job import TrainingJob
from keraunos.launch.callbacks import KerasCallbacks
from keraunos.launch.hooks import Hooks, Lap
from keraunos.launch.lap_book import ClosedLap, LapBook
from keraunos.launch.rank_table import LostRows, RankTable
from keraunos.launch.roll_call import RollCall
from keraunos.learners.home_model import HomeModel
from keraunos.learners.registry import load_home
from keraunos.parameters import Vector
from keraunos.telemetry.history import History
from keraunos.telemetry.progress import Progress
from keraunos.worker.failure import raise_failure
from keraunos.worker.loop import versions

logger = logging.getLogger(__name__)

JOIN_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_LEAVE_SECONDS = 15.0
_SHOW_SECONDS = 0.5
_SKEW = 2.0


class TrainingResult:
    """What a fit gives: the trained model, and what it measured.

    Attributes:
        history: the epochs and their metrics.
        parameters: the trained parameters as one vector, where the fit was this process's own.
        ranks: what each rank did with its time; prints as a table.
        lost_rows: which rows were missing from when on, because their worker was lost and `on_worker_lost` is
            `"continue"`.
    """

    def __init__(
        self,
        archive: Callable[[], bytes],
        history: History,
        parameters: Vector | None = None,
        *,
        ranks: RankTable | None = None,
        lost_rows: Sequence[LostRows] = (),
    ) -> None:
        self._archive = archive
        self.history = history
        self.parameters = parameters
        self.ranks = RankTable() if ranks is None else ranks
        self.lost_rows = tuple(lost_rows)

    @cached_property
    def archive(self) -> bytes:
        """The model with all that was compiled into it, as an archive."""
        return self._archive()


@dataclass
class RuleMemory:
    """What the rule on the driver's server remembers (an optimizer's moments), from one fit to the next.

    Given to a fit, the rule begins with it, where there is something, and leaves there what it knows in the end. The
    fits must have the same rule and the same model.
    """

    state: list[npt.NDArray[Any]] = field(default_factory=list)


class Workers(Protocol):
    """What was launched."""

    def check(self) -> None:
        """Raise what ended the workers early; return while they run, or when they ended well."""

    def ended(self) -> bool:
        """Whether all of them are gone."""

    def advice(self) -> str:
        """What a user may do when workers do not come."""

    def abandon(self, rank: int) -> None:
        """The training goes on without this rank: nobody waits for its end, and how it ends is no error."""


class Fit:
    """The driver's side of one fit while it is open: a server, the hooks, and the model they see."""

    def __init__(
        self, job: TrainingJob, home: HomeModel, server: Server, hooks: Sequence[Hooks], verbose: int | str
    ) -> None:
        self._job = job
        self._home = home
        self._server = server
        self._hooks = hooks
        self._verbose = verbose

    @classmethod
    @contextmanager
    def open(
        cls,
        job: TrainingJob,
        *,
        host: str = "127.0.0.1",
        custom_objects: Mapping[str, Any] | None = None,
        callbacks: Sequence[Any] = (),
        hooks: Sequence[Hooks] = (),
        verbose: int | str = "auto",
        memory: RuleMemory | None = None,
    ) -> Iterator[Fit]:
        """Read the model and refuse what it cannot do, start the server, let the hooks begin."""
        home = load_home(job.model, custom_objects)
        home.check(job)
        if job.schedule.learning_rate is not None:
            home.learning_rate = job.schedule.learning_rate
        # Behind the others, so that an epoch begins for callbacks only where nobody has ended the training.
        epochs = job.schedule.epochs if job.schedule.steps is None else None
        asked = [*hooks, *([KerasCallbacks(callbacks, epochs=epochs)] if callbacks else [])]
        with Server(
            job.exchange,
            job.workers,
            home.layout,
            home.read(),
            servers=job.servers,
            host=host,
            ports=job.ports,
            job=job.to_bytes(),
            backend=job.model.backend,
        ) as server:
            if memory is not None:
                _remember(server, memory)
            for each in asked:
                each.begin(home)
            server.tell_at_start({"learning_rate": home.learning_rate, "traces_losses": bool(hooks)})
            yield cls(job, home, server, asked, verbose)
            if memory is not None and server.rule is not None:
                memory.state = list(server.rule.state())

    @property
    def connection(self) -> dict[str, Any]:
        """What a worker needs to connect; it holds the job's secrets."""
        return self._server.connection

    def await_servers(self, workers: Workers) -> None:
        """Wait until the servers that are tasks of their own have joined; what they said is kept for `follow`."""
        servers = self._job.servers if isinstance(self._job.servers, int) else 0
        deadline = time.monotonic() + JOIN_SECONDS
        heard: list[Event] = []
        while sum(event.kind is Kind.HELLO for event in heard) < servers:
            try:
                heard.append(self._server.events.get(timeout=_LOOK_SECONDS))
            except queue.Empty:
                workers.check()
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"The {servers} server(s) did not start within {JOIN_SECONDS:.0f} s. {workers.advice()}"
                    ) from None
        for event in heard:
            self._server.events.put(event)

    def follow(self, workers: Workers) -> TrainingResult:
        """Follow the workers until the model is home; whatever ends this early tells them to stop."""
        follower = _Follower(self._job, self._home, self._server, workers, self._hooks, verbose=self._verbose)
        try:
            history = follower.run()
        except BaseException as error:
            self._server.stop(f"the fit ended: {type(error).__name__}")
            raise
        return TrainingResult(
            self._home.to_archive, history, self._home.read(), ranks=follower.ranks, lost_rows=follower.roll.lost_rows
        )


def _remember(server: Server, memory: RuleMemory) -> None:
    if server.rule is None:
        raise JobError(
            "What a rule remembers can be carried on only where the driver has it. Expected: servers='driver' and a "
            f"rule that is not the workers' own. Received: rule={str(server.plan.rule)!r}."
        )
    if memory.state:
        server.rule.restore(memory.state)


class _Follower:
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
        self._ready: dict[int, dict[str, Any]] = {}
        self._left: set[int] = set()
        self._done: set[int] = set()
        self._servers: set[int] = set()
        self._rows_done: dict[int, int] = {}
        self._book = LapBook()
        self._history: list[dict[str, float]] = []
        self._progress: Progress | None = None
        self._last = False
        self._show_next = 0.0
        self._told_left_out = False
        self._look_next = 0.0
        self._started = False
        self.roll = RollCall(job, server, clock)

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
            if self._job.needs_all_workers:
                self._server.start(self._ready)
            self._started = True
            while len(self._left | self._done) < self._job.workers:
                self._handle(self._next())
            self._look()
            self._home.write(self._server.parameters(self._look, last=True))
            self._server.release()
            self._see_off()
        for each in self._hooks:
            each.end()
        return History(self._history)

    def _see_off(self) -> None:
        """Wait until everyone has left; what they had to give is here, so nobody is waited for too long."""
        deadline = self._clock() + _LEAVE_SECONDS
        expected = set(self._joined) | self._servers
        while not expected <= self._left and self._clock() < deadline and not self._workers.ended():
            try:
                self._handle(self._server.events.get(timeout=_LOOK_SECONDS))
            except queue.Empty:
                self._workers.check()

    def _gather(self) -> None:
        """Wait until all workers are ready where the plan needs them at once, or else the first; and the servers."""
        deadline = self._clock() + JOIN_SECONDS
        wanted = self._job.workers if self._job.needs_all_workers else 1
        servers = self._job.servers if isinstance(self._job.servers, int) else 0
        while (
            len(self._ready.keys() | self._left) < wanted
            or (not self._ready and len(self._left) < self._job.workers)
            or len(self._servers) < servers
        ):
            late = len(self._joined) < wanted or len(self._servers) < servers
            self._handle(self._next(deadline if late else None))
        if not self._ready:
            raise DataError(self._no_rows())
        self._check_ready()

    def _expect(self) -> None:
        """Say how much there is to do, as far as it is known: an asynchronous plan's later workers come in between."""
        schedule, workers = self._job.schedule, self._job.workers
        rows = {rank: int(facts["rows"]) for rank, facts in self._ready.items()}
        total = epochs = 0
        for rank, count in rows.items():
            course = Course.of(self._job, rows, rank)
            step = min(count, schedule.batch_of(rank, workers))
            total += course.rows(schedule.rows_of(count, rank, workers), step)
            epochs = max(epochs, course.epochs)
        if self._progress is not None:
            self._progress.expect(total, epochs)

    def _tell_left_out(self) -> None:
        """Say once, when all ranks are known, how many rows an epoch leaves out because no whole batch holds them."""
        schedule, workers = self._job.schedule, self._job.workers
        if schedule.remainder != "drop" or self._told_left_out or len(self._ready.keys() | self._left) < workers:
            return
        self._told_left_out = True
        rows = {rank: int(facts["rows"]) for rank, facts in self._ready.items()}
        left_out = sum(count % schedule.batch_of(rank, workers) for rank, count in rows.items())
        if left_out and schedule.draws is None:
            logger.warning(
                "Every epoch leaves out %d of %d rows, which fill no whole batch on their workers.",
                left_out, sum(rows.values()),
            )  # fmt: skip

    def _no_rows(self) -> str:
        return (
            "There are no rows to train on. Expected at least one. Received: 0 rows for "
            f"{self._job.workers} worker(s). Check the filters and joins before `fit`."
        )

    def _check_ready(self) -> None:
        facts = self._ready.values()
        rows = {rank: each["rows"] for rank, each in self._ready.items()}
        if not self._job.needs_all_workers:
            return
        if not sum(rows.values()):
            raise DataError(
                "Every row is marked for validation, so there is none to train on. Check the indicator column."
            )
        wants_validation = self._job.columns.validation is not None or self._job.schedule.validation_split
        if wants_validation and not any(each["validation_rows"] for each in facts):
            raise DataError(
                "There is no row to validate on. Expected at least one; mark some in the indicator column or raise "
                "`validationSplit`."
            )
        counts = [rows.get(rank, 0) for rank in range(self._job.workers)]
        batch = self._job.schedule.batch_of(0, self._job.workers)
        if max(counts) > max(batch, _SKEW * max(1, min(counts))):
            logger.warning(
                "Rows are spread unevenly over the workers (%d to %d), so some will wait for others; "
                "call repartition(%d) on the DataFrame before fit.", min(counts), max(counts), self._job.workers,
            )  # fmt: skip

    def _next(self, deadline: float | None = None) -> Event:
        """The next event; looks after the workers while there is none."""
        while True:
            if self._clock() >= self._look_next:
                self._look()
            try:
                return self._server.events.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                pass
            self._look()
            if self._workers.ended() and self._server.events.empty():
                if not self._joined:
                    raise DataError(self._no_rows())
                raise WorkerError(
                    "The workers ended before the training did. "
                    f"{len(self._joined)} of {self._job.workers} had joined. {self._workers.advice()}"
                )
            if deadline is not None and self._clock() > deadline:
                raise ClusterError(
                    f"Only {len(self._joined)} of {self._job.workers} workers started within {JOIN_SECONDS:.0f} s, and "
                    f"this plan needs all of them at once. {self._workers.advice()}"
                )

    def _look(self) -> None:
        """Look after the workers: what ended them comes first, then who is away."""
        self._look_next = self._clock() + _LOOK_SECONDS
        self._workers.check()
        hosts = self._servers | (set(self._joined) if self._job.servers == "workers" else set())
        there = (self._joined.keys() - self._done) | hosts
        self.roll.look(there - self._left, self._has_others, self._workers.abandon)

    def _has_others(self, rank: int) -> bool:
        """Whether somebody who has rows trains, or has trained to the end, beside a rank."""
        return bool(self._joined.keys() - (self._left - self._done) - {rank})

    def _on_lost(self, event: Event) -> None:
        """A rank was left out: from now on nothing is expected of it."""
        rank, schedule = event.rank, self._job.schedule
        self._left.add(rank)
        self._book.forget(rank)
        facts = self._ready.get(rank, {"rows": 0}) if self._started else self._ready.pop(rank, {"rows": 0})
        rows = schedule.rows_of(int(facts["rows"]), rank, self._job.workers) if facts["rows"] else 0
        lost = LostRows(rank, self._joined[rank], self._book.epoch, rows)
        self.roll.lost_rows.append(lost)
        logger.warning(
            "Worker %d on %s was away for %.0f s, and the training goes on without it (onWorkerLost='continue'). Its "
            "%d rows are missing from epoch %d on.", rank, lost.host, event.body["seconds"], rows, lost.epoch + 1,
        )  # fmt: skip
        self._close_laps()

    def _handle(self, event: Event) -> None:
        handlers = {
            Kind.HELLO: self._on_hello,
            Kind.READY: self._on_ready,
            Kind.REPORT: self._on_report,
            Kind.LOSSES: self._on_losses,
            Kind.LAP: self._on_lap,
            Kind.DONE: self._on_done,
            Kind.BYE: self._on_bye,
            Kind.FAILED: self._on_failed,
            Kind.STACKS: self.roll.hear_stacks,
            Kind.REMOVE: self._on_lost,
        }
        handler = handlers.get(event.kind)
        if handler is not None:
            handler(event)

    def _on_hello(self, event: Event) -> None:
        if event.rank >= FIRST_SERVER:
            self._servers.add(event.rank)
        if event.body["again"]:
            self._on_return(event)
        ours, theirs = versions(), event.body["versions"]
        differing = [
            f"{name} {theirs.get(name)} (driver: {ours[name]})" for name in ours if theirs.get(name) != ours[name]
        ]
        if differing:
            raise ClusterError(
                f"The executor on {event.body['host']} has other versions than the driver: {', '.join(differing)}. "
                "Install the same ones everywhere, or ship one environment with spark.archives."
            )
        if event.rank < FIRST_SERVER:
            self._joined[event.rank] = str(event.body["host"])

    def _on_return(self, event: Event) -> None:
        """A rank was lost and has come back; it goes on where it stood, unless parameters went with it."""
        where = self._joined.get(event.rank, "a host")
        if self._job.servers == "workers" or event.rank >= FIRST_SERVER:
            raise WorkerError(
                f"Member {event.rank} on {where} was lost, and with it the part of the parameters that it held. Look "
                "for the reason (memory, a lost executor) in the executor's log. With servers='driver' a fit continues."
            )
        self.roll.returns[event.rank] += 1
        logger.warning("Worker %d on %s was lost and has come back; it continues where it stood.", event.rank, where)

    def _on_ready(self, event: Event) -> None:
        if event.rank >= FIRST_SERVER:
            return
        if event.body.get("changed"):
            raise DataError(
                f"Worker {event.rank} was lost, and its rows came back different, so that it cannot continue where it "
                "stood. The DataFrame is not deterministic (a random function, an unordered limit, a changing source); "
                "write it out, or checkpoint() it, before `fit`."
            )
        spec = BatchSpec.from_json(event.body["spec"])
        if self._book.reader is None:
            self._book.reader = self._home.metric_states(spec)
        first = next(iter(self._ready.values()), None)
        if first is not None and first["spec"] != event.body["spec"]:
            raise DataError(
                "Rows have one shape and type on one worker and another on the next. Expected: "
                f"{first['spec']}. Received: {event.body['spec']} on worker {event.rank}."
            )
        self._ready[event.rank] = event.body
        for each in self._hooks:
            each.on_ready(event.rank, int(event.body["rows"]))
        self._expect()
        self._tell_left_out()

    def _on_report(self, event: Event) -> None:
        self._book.measure(event.body, event.arrays)
        self._rows_done[event.rank] = int(event.body["rows"])
        self._show()

    def _on_losses(self, event: Event) -> None:
        losses, rows = event.arrays[0].T
        for each in self._hooks:
            each.on_losses(event.rank, event.round, losses, rows)

    def _on_lap(self, event: Event) -> None:
        split = int(event.body["split"])
        self._book.end(event.rank, event.body, event.arrays[:split], event.arrays[split:])
        self._rows_done[event.rank] = int(event.body["rows"])
        self._close_laps()

    def _on_done(self, event: Event) -> None:
        self._done.add(event.rank)
        self._server.retire(event.rank)
        self._close_laps()

    def _on_bye(self, event: Event) -> None:
        self._left.add(event.rank)
        self._tell_left_out()
        self._close_laps()

    def _on_failed(self, event: Event) -> None:
        self._server.stop(f"worker {event.rank} failed")
        raise_failure(event.rank, event.body)

    def _close_laps(self) -> None:
        """Close every lap that all ranks that train have reported, until training is to end."""
        while not self._last:
            lap = self._book.close(set(range(self._job.workers)) - self._left - self._done)
            if lap is None:
                return
            self._last = self._ask(lap)
            if lap.over or self._last:
                self._history.append(lap.epoch_logs)
            if self._progress is not None:
                self._progress.update(sum(self._rows_done.values()), lap.epoch, lap.epoch_logs)
                if lap.over or self._last:
                    self._progress.epoch_end(lap.epoch, lap.epoch_logs)
            self._server.go(lap.number, learning_rate=self._home.learning_rate, last=self._last)

    def _ask(self, closed: ClosedLap) -> bool:
        """Tell the hooks that a lap ended; whether it was the last."""
        lap = Lap(
            epoch=closed.epoch,
            step=closed.step,
            ends_epoch=closed.ends_epoch,
            logs=closed.logs,
            epoch_logs=closed.epoch_logs,
            last=closed.last,
            parameters=self._parameters_of_now(),
        )
        for each in self._hooks:
            if each.end_lap(lap):
                lap = replace(lap, last=True)
        return lap.last

    def _parameters_of_now(self) -> Callable[[], Vector]:
        """What gives the parameters as they are at this meeting; they come home once, whoever asks."""
        found: list[Vector] = []

        def parameters() -> Vector:
            if not found:
                found.append(np.array(self._server.parameters(self._look)))
            return found[0].copy()

        return parameters

    def _show(self) -> None:
        if self._progress is not None and self._clock() >= self._show_next:
            self._show_next = self._clock() + _SHOW_SECONDS
            self._progress.update(sum(self._rows_done.values()), self._book.epoch, self._book.so_far())
