"""What a worker does, from its first row to its last message. Read this first. Runs on workers.

join the job → claim cores → read the rows once → build the learner → start when all are ready
for each lap:  for each round:  step, share;   then validate, report, and hear what the driver decided
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import pyarrow as pa

from keraunos import __version__
from keraunos.batch import Batch, Front
from keraunos.data.shard import Shard, ShardBuilder
from keraunos.errors import DataError, ExchangeError
from keraunos.exchange.client import Client, StateLost, Stopped
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.messages import Save, Start, Upload
from keraunos.exchange.transports.registry import make_transport
from keraunos.exchange.transports.transport import Transport
from keraunos.exchange.wire import Message
from keraunos.formats.registry import format_of, load_learner
from keraunos.job.course import Course, Leg
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import TrainingJob
from keraunos.learners.learner import Learner
from keraunos.worker import resources
from keraunos.worker.divergence import Watch
from keraunos.worker.failure import LastLines, describe_failure
from keraunos.worker.incoming import received
from keraunos.worker.memory import explained
from keraunos.worker.rounds import rounds_of
from keraunos.worker.state_keeper import StateKeeper
from keraunos.worker.stopwatch import Stopwatch
from keraunos.worker.thread_name import thread_named, worker_name

logger = logging.getLogger(__name__)

REPORT_EVERY_SECONDS = 0.25
# Metrics are added up in parts of so many steps. A part is what one loss that is not finite takes with it.
PART_STEPS = 256


@dataclass(frozen=True)
class Seat:
    """Where and as whom a worker runs."""

    rank: int
    incarnation: int
    threads: int = 1
    workers_on_host: int = 1
    devices: tuple[str, ...] = ()
    share_memory: bool = True
    pin: bool = True


def run(
    seat: Seat,
    connection: Mapping[str, Any],
    record_batches: Iterable[pa.RecordBatch],
    custom_objects: Mapping[str, Any] | None = None,
) -> None:
    """Train one rank's share of a job, over one connection, to the end; what goes wrong is told to the driver."""
    with (
        thread_named(worker_name(seat.rank)),
        LastLines() as log,
        Client(connection, seat.rank, seat.incarnation, share_memory=seat.share_memory) as client,
    ):
        job: TrainingJob | None = None
        try:
            sizes = client.hello(versions())
            job = TrainingJob.from_bytes(client.fetch("job", 0, sizes["job"]))
            client.patience = job.driver_patience
            with _resources(seat):
                # A model that encodes its rows itself is loaded before they are read.
                early = format_of(job.model).encodes_rows(job.model)
                learner = load_learner(job.model, custom_objects) if early else None
                with _read_rows(job, seat, record_batches, None if learner is None else learner.front) as builder:
                    shard = builder.build(
                        seed=job.schedule.seed, rank=seat.rank, validation_split=job.schedule.validation_split
                    )
                    counted = _train(job, seat, client, shard, learner, custom_objects)
            client.bye(counted)
        except Stopped as stopped:
            logger.info("rank %d ends: %s", seat.rank, stopped)
        except StateLost as error:
            client.failed(describe_failure(error, log.lines))
        except ExchangeError:
            # Another incarnation took over, or nobody is left to tell.
            raise
        except BaseException as error:
            # The driver raises it; raised here as well, it would only fill Spark's log with frames of Java.
            told = explained(error, job, seat.rank, seat.workers_on_host)
            client.failed(describe_failure(told, log.lines))
            if not isinstance(error, Exception):
                raise


def versions() -> dict[str, str]:
    """The versions that must agree between the driver and every worker."""
    return {"keraunos": __version__, **{name: metadata.version(name) for name in ("keras", "pyarrow")}}


@contextmanager
def _resources(seat: Seat) -> Iterator[None]:
    """The devices and cores of this seat; a framework that is not loaded yet sees no others."""
    if seat.devices:
        resources.show_devices(seat.devices)
    with resources.cores(seat.threads) if seat.pin and not seat.devices else nullcontext():
        yield


def _read_rows(
    job: TrainingJob, seat: Seat, record_batches: Iterable[pa.RecordBatch], front: Front | None
) -> ShardBuilder:
    builder = ShardBuilder(
        job.columns,
        budget=resources.memory_budget(job.memory_budget, seat.workers_on_host),
        spool_dir=resources.spool_directory(),
        floatx=job.model.floatx,
        class_weight=job.schedule.class_weight or None,
        front=front,
    )
    try:
        for record_batch in received(record_batches):
            builder.add(record_batch)
    except BaseException:
        builder.close()
        raise
    return builder


def _train(
    job: TrainingJob,
    seat: Seat,
    client: Client,
    shard: Shard,
    learner: Learner | None,
    custom_objects: Mapping[str, Any] | None,
) -> Mapping[int, int]:
    """Train; returns how many rows of each rank were applied here, where that is counted here."""
    if not shard.rows and not shard.validation_rows:
        logger.info("rank %d has no rows and leaves", seat.rank)
        return {}
    batch_size = job.schedule.batch_of(seat.rank, job.workers)
    _check_whole_batches(job.schedule, shard, batch_size)
    if learner is None:
        learner = load_learner(job.model, custom_objects)
    # No batch has more rows than there are, however large the batch size: that may stand for all rows.
    example = shard.example(min(batch_size, max(shard.rows, shard.validation_rows)))
    learner.prepare(example, seed=job.schedule.seed, rank=seat.rank)
    parts = learner.count_parts(example) if job.exchange.send == "gradients" else 1
    facts = ShardFacts(shard.rows, shard.validation_rows, shard.spec, shard.digest, parts)
    with make_transport(client, job.exchange, job.placement, job.workers, job.ports) as transport:
        start = client.ready(facts, transport.address)
        transport.open(start, learner, parts)
        training = _Training(job, client, transport, shard, learner, start, example)
        training.run()
        transport.leave()
        # Another rank that has to come back may need what this one has, or the part that it answers for.
        client.done(wait=transport.serves or job.exchange.synchronous)
        return transport.contributed


def _check_whole_batches(schedule: Schedule, shard: Shard, batch_size: int) -> None:
    """Refuse rows that would all be left out."""
    uses = (
        (shard.rows, "train", schedule.remainder),
        (shard.validation_rows, "validate", schedule.validation_remainder or schedule.remainder),
    )
    for rows, use, remainder in uses:
        if remainder == "drop" and 0 < rows < batch_size:
            raise DataError(
                f"A worker has too few rows to {use} on in whole batches, which is all that the model takes. Expected "
                f"at least {batch_size}, the batch size. Received: {rows}. Lower the batch size, or use fewer workers."
            )


class _Training:
    """One rank's laps and rounds."""

    def __init__(
        self,
        job: TrainingJob,
        client: Client,
        transport: Transport,
        shard: Shard,
        learner: Learner,
        start: Start,
        example: Batch,
    ) -> None:
        self._schedule = job.schedule
        self._plan = job.exchange
        self._client = client
        self._transport = transport
        self._shard = shard
        self._learner = learner
        self._start = start
        self._example = example
        rows = start.rows
        self._first = client.rank == min(rows)
        self._uploads = job.exchange.applies_on_workers and self._first
        self._leaves_optimizer = job.keeps_optimizer and self._first
        self._batch_size = job.schedule.batch_of(client.rank, job.workers)
        self._course = Course.of(job, rows, client.rank)
        self._epoch_steps = job.schedule.steps_of(rows[client.rank], client.rank, job.workers)
        self._epoch_rows = job.schedule.rows_of(rows[client.rank], client.rank, job.workers)
        self._saves = transport.saves
        self._watch = Watch(job, client, learner)
        self._rounds = rounds_of(job.exchange, learner, transport, self._watch, job.workers)
        self._state = StateKeeper(job, client, learner, self._rounds, transport, alone=len(rows) == 1)
        self._stopwatch = Stopwatch(client)
        self._rows_done = 0
        self._losses_done = 0
        self._reported = time.monotonic()

    def run(self) -> None:
        """Every lap from where this rank stands, then the parameters where no server has them."""
        self._set_learning_rate(self._start.learning_rate)
        first, skipped = self._begin()
        self._watch.begin(self._rounds.parameters)
        ended = self._client.control is not None and self._client.control.last and self._start.again
        batches: Iterator[Batch] = iter(())
        for number in range(self._course.laps if ended else first, self._course.laps):
            leg = self._course.leg(number)
            if number == first or not leg.index:
                batches = itertools.islice(self._batches(leg.epoch), leg.first + skipped * self._course.every, None)
            self._lap(leg, batches, skipped)
            skipped = 0
            if self._ends_after(leg):
                break
        if self._leaves_optimizer:
            self._client.send_last_state(self._state.round, self._learner.optimizer_state())
        if self._uploads:
            self._client.send_parameters(self._rounds.weights())

    def _begin(self) -> tuple[int, int]:
        """Join the others; the lap to begin with, and the rounds of it that are done."""
        again = self._start.again
        wants = not self._plan.synchronous or (again and not self._plan.applies_on_workers)
        self._state.round, parameters = self._transport.join(wants_parameters=wants)
        if again:
            parameters = self._state.recover(parameters)
        self._rounds.begin(parameters)
        if again:
            self._skip(*self._course.place(self._state.round))
        self._state.stand()
        self._state.leave_always()
        if self._plan.synchronous:
            self._client.on(Save, self._announced)
        if self._plan.applies_on_workers:
            self._client.on(Upload, lambda _, __: self._client.send_parameters(self._rounds.weights()))
        laps, rounds = self._course.place(self._state.round)
        if again:
            self._resume(laps, rounds)
        return laps, rounds

    def _skip(self, laps: int, rounds: int) -> None:
        """Count what this rank has done already, and leave out the random numbers of it."""
        steps = self._course.steps_at(laps, rounds)
        taken = self._course.rows(self._epoch_steps, 1, steps)
        self._rows_done = self._course.rows(self._epoch_rows, self._batch_size, steps)
        self._client.tally.steps = taken
        take = self._learner.gradient if self._plan.send == "gradients" else self._learner.step
        self._learner.skip_random(self._example, taken, take)

    def _announced(self, message: Message, _: Save) -> None:
        """Save before that round, unless this rank or the part that it answers for may be there already."""
        if message.round > self._state.round + 1:
            self._saves.announce(message.round)
        else:
            self._client.miss(message.round)

    def _resume(self, laps: int, rounds: int) -> None:
        """Take up what was decided while this rank was away, and end the lap that it did not end."""
        logger.info("rank %d continues after %d laps and %d rounds", self._client.rank, laps, rounds)
        if self._start.laps_done < laps:
            # Lost after the last round of a lap and before its end; what it measured is lost with it.
            for number in range(self._start.laps_done, laps):
                self._ends_after(self._course.leg(number))
        elif laps and self._plan.synchronous:
            self._client.wait_for_go(laps - 1)
        if self._client.control is not None:
            self._set_learning_rate(self._client.control.learning_rate)

    def _lap(self, leg: Leg, batches: Iterator[Batch], skipped: int) -> None:
        length = self._course.every
        self._losses_done = skipped * length
        part = leg.first
        for first in range(leg.first + skipped * length, leg.stop, max(1, length)):
            portion = itertools.islice(batches, min(length, leg.stop - first))
            self._watch.at(leg.epoch, leg.step + first - leg.first)
            self._rows_done += self._stopwatch.time(partial(self._rounds.run, self._state.round), portion)
            self._state.end_round()
            self._client.tally.round, self._client.tally.rows = self._state.round, self._rows_done
            saves = self._saves.due(self._state.round)
            done = first + length
            ends_part = part + PART_STEPS <= done < leg.stop
            if ends_part:
                part = done
            if ends_part or saves or time.monotonic() - self._reported > REPORT_EVERY_SECONDS:
                self._report(leg, ends_part=ends_part)
            if saves:
                # Behind the report: the driver then knows what this rank measured before the round.
                self._state.save(whole=self._first or not self._state.others_have_it)

    def _ends_after(self, leg: Leg) -> bool:
        """Measure what a lap led to, report it, and hear whether it was the last."""
        self._rounds.finish()
        self._watch.end_lap(self._state.round, self._rounds.parameters)
        self._report_losses(leg)
        metrics = self._learner.take_metrics()
        validates = self._schedule.validates_after(leg.step + leg.stop - leg.first, ends_epoch=leg.ends_epoch)
        if validates:
            remainder = self._schedule.validation_remainder or self._schedule.remainder
            for batch in self._shard.validation_batches(self._batch_size, remainder=remainder):
                self._learner.evaluate(batch)
        validation = self._learner.take_metrics() if validates and self._shard.validation_rows else []
        skipped, trained = self._watch.take_lap()
        self._client.end_lap(leg, self._rows_done, metrics, validation, skipped=skipped, trained=trained)
        control = self._client.wait_for_go(leg.number) if self._plan.synchronous else self._client.poll_control()
        if control is None:
            return False
        self._set_learning_rate(control.learning_rate)
        return control.last

    def _report(self, leg: Leg, *, ends_part: bool) -> None:
        self._reported = time.monotonic()
        self._report_losses(leg)
        metrics = self._learner.take_metrics() if ends_part else self._learner.read_metrics()
        self._client.report(leg, self._state.round, self._rows_done, metrics, so_far=not ends_part)

    def _report_losses(self, leg: Leg) -> None:
        """Tell the driver the losses since the last time, where somebody wants to know."""
        losses = self._learner.take_losses()
        if len(losses) and self._start.traces_losses:
            self._client.report_losses(leg.step + self._losses_done, losses)
        self._losses_done += len(losses)

    def _set_learning_rate(self, value: float | None) -> None:
        if value is not None and value != self._learner.learning_rate:
            self._learner.learning_rate = value

    def _batches(self, epoch: int) -> Iterator[Batch]:
        schedule = self._schedule
        return self._shard.batches(
            epoch, self._batch_size, schedule.shuffle, remainder=schedule.remainder, draws=schedule.draws
        )
