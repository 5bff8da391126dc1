"""Schedules end to end, over a real server: how many steps, on which rows, and what is said of the others."""

import logging

import numpy as np
import pytest

from keraunos.errors import DataError
from tests.conformance import engine
from tests.conformance import learner_models as models

SIZES = [70, 33]


def rows(count):
    x = np.random.default_rng(0).normal(size=(count, models.FEATURES)).astype("float32")
    return engine.table(x=x, y=(x[:, 0] > 0).astype("int64"))


def train(sizes=SIZES, exchange="allreduce", **schedule):
    job = engine.job_of(models.dense("sgd"), len(sizes), exchange=exchange, **schedule)
    parts = engine.partitions(rows(sum(sizes)), sizes)
    return job, parts, engine.train(job, parts)[0]


def same_in_one_process(job, parts):
    """Plain SGD on the global batches that the schedule describes."""
    schedule, workers = job.schedule, job.workers
    model = engine.from_archive(job.model.archive)
    for epoch in range(schedule.epochs):
        streams = [
            shard.batches(epoch, schedule.batch_of(rank, workers), remainder=schedule.remainder, draws=schedule.draws)
            for rank, shard in enumerate(engine.shards_of(job, parts))
        ]
        while batches := [batch for batch in (next(stream, None) for stream in streams) if batch is not None]:
            inputs, targets = ([getattr(each, name) for each in batches] for name in ("inputs", "targets"))
            model.train_on_batch(np.concatenate(inputs), np.concatenate(targets))
    return model


@pytest.mark.parametrize(
    "schedule",
    [
        {"batch_total": 15},
        {"batch_size": 23, "remainder": "join"},
        {"batch_total": 40, "remainder": "drop"},
        {"batch_size": 10, "draws": 4},
    ],
    ids=str,
)
def test_workers_together_train_like_one_process_on_the_same_batches(schedule):
    job, parts, model = train(epochs=2, **schedule)
    assert engine.difference(model, same_in_one_process(job, parts)) < 1e-4


def test_rows_that_are_left_out_are_told_once(caplog):
    with caplog.at_level(logging.WARNING):
        train(exchange="downpour", batch_size=16, remainder="drop", epochs=3)
    told = [record.getMessage() for record in caplog.records if "leaves out" in record.getMessage()]
    assert told == ["Every epoch leaves out 7 of 103 rows, which fill no whole batch on their workers."]


@pytest.mark.parametrize("exchange", ["allreduce", "downpour"])
def test_a_worker_without_a_whole_batch_is_an_error_that_names_the_batch_size(exchange):
    with pytest.raises(DataError, match=r"too few rows to train on in whole batches.*at least 40, the batch.*: 33"):
        train(exchange=exchange, batch_size=40, remainder="drop")
