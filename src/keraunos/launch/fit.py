"""A fit while it is open: the model at home, the server, the hooks, and what was saved before. Runs on the driver."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keraunos.checkpoints.store import CheckpointStore
from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import ClusterError
from keraunos.exchange.coordination import Event
from keraunos.exchange.server import Server
from keraunos.exchange.transports.registry import check_transport
from keraunos.exchange.wire import Kind
from keraunos.formats.registry import load_home
from keraunos.job.saving import SaveEvery
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch.callback_checks import check_divergence
from keraunos.launch.callbacks import KerasCallbacks
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.follow import JOIN_SECONDS, LOOK_SECONDS, Follower
from keraunos.launch.hooks import Hooks
from keraunos.launch.program import PROGRAM_FILE, Program
from keraunos.launch.rule_memory import RuleMemory
from keraunos.launch.saver import MAY_DIFFER, Resumed, identity_of
from keraunos.launch.training_result import TrainingResult
from keraunos.launch.workers import Workers
from keraunos.learners.home_model import HomeModel
from keraunos.telemetry.events import CheckpointWritten
from keraunos.telemetry.history import History

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Saving:
    """Where a training is saved, and how often."""

    store: CheckpointStore
    every: SaveEvery


class Fit:
    """The driver's side of one fit while it is open: a server, the hooks, and the model they see."""

    def __init__(
        self,
        job: TrainingJob,
        home: HomeModel,
        server: Server,
        hooks: Sequence[Hooks],
        events: FitEvents,
        verbose: int | str,
        *,
        saving: tuple[SaveEvery, CheckpointWriter] | None = None,
        resumed: Resumed | None = None,
    ) -> None:
        self._job = job
        self._home = home
        self._server = server
        self._hooks = hooks
        self._events = events
        self._verbose = verbose
        self._saving = saving
        self._resumed = resumed
        # Whether every epoch was trained earlier, as a callback has found.
        self.over = False

    @classmethod
    @contextmanager
    def open(
        cls,
        job: TrainingJob,
        events: FitEvents,
        *,
        host: str | None = None,
        advertised: str | None = None,
        custom_objects: Mapping[str, Any] | None = None,
        callbacks: Sequence[Any] = (),
        hooks: Sequence[Hooks] = (),
        verbose: int | str = "auto",
        memory: RuleMemory | None = None,
        saving: Saving | None = None,
    ) -> Iterator[Fit]:
        """Read the model and refuse what it cannot do, start the server, let the hooks begin.

        With `saving` the training goes on where it was saved last, and is saved as it goes. What happens is published
        in `events`, which outlive this where the fit is launched again.
        """
        check_divergence(callbacks, job.on_divergence)
        check_transport(job.placement, job.exchange)
        home = load_home(job.model, custom_objects)
        home.check(job)
        if job.schedule.learning_rate is not None:
            home.learning_rate = job.schedule.learning_rate
        resumed = None if saving is None else _found(saving.store, job, home)
        if resumed is None:
            events.launched(home.layout.size)
        else:
            events.launched(home.layout.size, resumed.number, History(resumed.facts["history"]).epochs)
        # Behind the others, so that an epoch begins for callbacks only where nobody has ended the training.
        epochs = job.schedule.epochs if job.schedule.steps is None else None
        called = [KerasCallbacks(callbacks, epochs=epochs, goes_on=resumed is not None)] if callbacks else []
        asked = [*hooks, *called]
        source = _begun(asked, home, job.model, custom_objects)
        over = resumed is None and any(each.is_over for each in called)
        first = resumed.first_epoch if resumed else sum(each.first_epoch for each in called if not over)
        job = replace(job, model=source, schedule=replace(job.schedule, first_epoch=first))
        with (
            Server(
                job.exchange,
                job.workers,
                home.layout,
                home.read(),
                placement=job.placement,
                host=host,
                advertised=advertised,
                ports=job.ports,
                job=job.to_bytes(),
                backend=job.model.backend,
                patience=job.driver_patience,
                standing=None if resumed is None else resumed.standing(),
            ) as server,
            nullcontext() if saving is None else _writer(saving.store, events) as writer,
        ):
            if memory is not None and resumed is None:
                memory.begin(server)
            saved = None if saving is None or writer is None else (saving.every, writer)
            opened = cls(job, home, server, asked, events, verbose, saving=saved, resumed=resumed)
            opened.over = over
            opened._begin()
            yield opened
            if memory is not None:
                memory.end(server, checked=job.on_divergence != "ignore")

    def _begin(self) -> None:
        """Let the hooks go on where they were, and the workers know what they have set."""
        resumed = self._resumed
        if resumed is not None:
            if resumed.facts["learning_rate"] is not None:
                self._home.learning_rate = resumed.facts["learning_rate"]
            for each, (facts, arrays) in zip(self._hooks, resumed.hooks(), strict=False):
                each.go_on_from(facts, arrays, int(resumed.facts["book"]["at"][0]))
        self._server.tell_at_start(
            learning_rate=self._home.learning_rate,
            traces_losses=any(each.reads_losses for each in self._hooks),
        )

    @property
    def connection(self) -> dict[str, Any]:
        """What a worker needs to connect; it holds the job's secrets."""
        return self._server.connection

    def finish(self) -> TrainingResult:
        """The result where all epochs were trained earlier, and nothing is to be launched."""
        for each in self._hooks:
            each.end()
        history = self._events.conclude(ended=None, stopped=False, skipped_rows=0, lost_rows=0)
        return TrainingResult(self._home.to_archive, history, self._home.read())

    def await_servers(self, workers: Workers) -> None:
        """Wait until the servers that are tasks of their own have joined; what they said is kept for `follow`."""
        servers = self._job.placement.server_tasks
        deadline = time.monotonic() + JOIN_SECONDS
        heard: list[Event] = []
        while sum(event.kind is Kind.HELLO for event in heard) < servers:
            try:
                heard.append(self._server.events.get(timeout=LOOK_SECONDS))
            except queue.Empty:
                workers.check()
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"The {servers} server(s) did not come to the driver at {self._server.connection['address']} "
                        f"within {JOIN_SECONDS:.0f} s. {workers.advice()}"
                    ) from None
        for event in heard:
            self._server.events.put(event)

    def follow(self, workers: Workers) -> TrainingResult:
        """Follow the workers until the model is home; whatever ends this early tells them to stop."""
        follower = Follower(
            self._job,
            self._home,
            self._server,
            workers,
            self._hooks,
            self._events,
            verbose=self._verbose,
            saving=self._saving,
            resumed=self._resumed,
        )
        try:
            history = follower.run()
        except BaseException as error:
            self._server.stop(f"the fit ended: {type(error).__name__}")
            raise
        return TrainingResult(
            self._home.to_archive,
            history,
            self._home.read(),
            follower.contributed,
            ranks=follower.ranks,
            lost_rows=follower.roll.lost_rows,
        )


def _begun(
    hooks: Sequence[Hooks], home: HomeModel, source: ModelSource, custom_objects: Mapping[str, Any] | None
) -> ModelSource:
    """Let the hooks begin; the model with the parameters that they have left, which training starts from."""
    initial = home.read()
    for each in hooks:
        each.begin(home)
    if np.array_equal(home.read(), initial, equal_nan=True):
        return source
    # What else it has, such as its optimizer's state, stays as it came.
    fresh = load_home(source, custom_objects)
    fresh.write(home.read())
    return replace(source, archive=fresh.to_archive())


def _writer(store: CheckpointStore, events: FitEvents) -> CheckpointWriter:
    def written(number: int) -> None:
        events.publish(CheckpointWritten(number=number))

    return CheckpointWriter(store, on_written=written, warn=events.warn)


def _found(store: CheckpointStore, job: TrainingJob, home: HomeModel) -> Resumed | None:
    """The training as it was saved last, if it is this one; `None` where it is to begin."""
    store.claim(identity_of(job, home), MAY_DIFFER)
    store.take_over()
    store.note(PROGRAM_FILE, Program.of_this_process().to_json(), private=True)
    checkpoint = store.latest()
    if checkpoint is None:
        return None
    resumed = Resumed(checkpoint, job)
    logger.info("The training in %s goes on from checkpoint %d.", store.path, resumed.number)
    return resumed
