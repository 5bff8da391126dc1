"""The whole engine in one process: real server, real sockets, real worker loop, each worker in a thread."""

import threading

import numpy as np
import pyarrow as pa

from keraunos.data.shard import ShardBuilder
from keraunos.errors import ExchangeError
from keraunos.exchange import hosting
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch.fit import Fit
from keraunos.launch.fit_events import FitEvents
from keraunos.learners.keras_archive import from_archive, live_source
from keraunos.learners.keras_variables import read_vector
from keraunos.worker import loop


def table(**columns):
    return pa.table({name: _arrow(np.asarray(values)) for name, values in columns.items()})


def _arrow(values):
    flat = pa.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    return flat


def partitions(rows, sizes):
    """`rows` cut into consecutive pieces of those sizes."""
    starts = np.cumsum([0, *sizes])
    return [rows.slice(int(start), size) for start, size in zip(starts, sizes, strict=False)]


def job_of(
    model,
    workers,
    *,
    exchange="allreduce",
    every=None,
    weight=None,
    validation=None,
    custom=None,
    servers="driver",
    ports=None,
    **schedule,
):
    columns = Columns((Slot(None, ("x",)),), (Slot(None, ("y",)),), weight=weight, validation=validation)
    return TrainingJob(
        model=model if isinstance(model, ModelSource) else live_source(model, custom),
        columns=columns,
        schedule=Schedule(**schedule),
        exchange=exchange if isinstance(exchange, ExchangePlan) else ExchangePlan.named(exchange, every=every),
        workers=workers,
        servers=servers,
        ports=ports,
    )


def shards_of(job, parts):
    """The shards that the workers of a job will have."""
    shards = []
    for rank, part in enumerate(parts):
        with ShardBuilder(
            job.columns, budget=1 << 30, spool_dir=None, class_weight=job.schedule.class_weight or None
        ) as builder:
            for batch in part.to_batches():
                builder.add(batch)
            shards.append(
                builder.build(seed=job.schedule.seed, rank=rank, validation_split=job.schedule.validation_split)
            )
    return shards


class Threads:
    """Workers as threads; what one raises is kept."""

    def __init__(self, job, connection, parts, share_memory):
        self.errors = []
        self._threads = [
            threading.Thread(target=self._work, args=(job, connection, rank, part, share_memory))
            for rank, part in enumerate(parts)
        ]
        self._threads += [
            threading.Thread(target=self._serve, args=(connection, i)) for i in range(job.placement.server_tasks)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, job, connection, rank, part, share_memory):
        seat = loop.Seat(rank, incarnation=1, share_memory=share_memory, pin=False)
        try:
            loop.run(seat, connection, part.to_batches())
        except ExchangeError:
            pass
        except Exception as error:  # noqa: BLE001 - the test's own thread raises it
            self.errors.append(error)

    def _serve(self, connection, index):
        try:
            hosting.host_slice(connection, index, 1, loop.versions())
        except ExchangeError:
            pass
        except Exception as error:  # noqa: BLE001 - the test's own thread raises it
            self.errors.append(error)

    def check(self):
        if self.errors:
            raise self.errors[0]

    def ended(self):
        return not any(thread.is_alive() for thread in self._threads)

    def advice(self):
        return ""

    def preparing(self, seconds):
        return False

    def abandon(self, rank):
        """Its thread ends by itself, or is waited for in the end."""

    def join(self):
        for thread in self._threads:
            thread.join(timeout=240)
        assert self.ended(), "a worker's thread outlived its fit"


def fitted(job, parts, *, share_memory=True, listeners=(), **options):
    """Train and give the result as a launcher does."""
    with FitEvents(job, listeners) as events, Fit.open(job, events, verbose=0, **options) as fit:
        threads = Threads(job, fit.connection, parts, share_memory)
        try:
            return fit.follow(threads)
        finally:
            threads.join()


def train(job, parts, **options):
    """Train and give the model and the history."""
    result = fitted(job, parts, **options)
    return from_archive(result.archive, trusted=job.model.trusted), result.history


def global_batches(job, parts):
    """What all workers of a synchronous job together see in each step: inputs, targets, weights."""
    shards = shards_of(job, parts)
    schedule = job.schedule
    for epoch in range(schedule.epochs):
        streams = [
            shard.batches(epoch, schedule.batch_size, shuffle=schedule.shuffle, remainder=schedule.remainder)
            for shard in shards
            if shard.rows
        ]
        while batches := [batch for batch in (next(stream, None) for stream in streams) if batch is not None]:
            yield (
                np.concatenate([each.inputs for each in batches]),
                np.concatenate([each.targets for each in batches]),
                None if batches[0].weights is None else np.concatenate([each.weights for each in batches]),
            )


def plain_keras(job, parts):
    """The same job in one process: plain Keras fed the same sequence of global batches."""
    model = from_archive(job.model.archive, trusted=job.model.trusted)
    for inputs, targets, weights in global_batches(job, parts):
        model.train_on_batch(inputs, targets, sample_weight=weights)
    return model


def difference(model, other):
    """The relative L2 difference of two models' weight vectors."""
    ours, theirs = read_vector(model), read_vector(other)
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))
