"""Schedules: what a step is on each rank, and values that are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.errors import JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import REMAINDERS, Schedule
from keraunos.job.training_job import ModelSource, TrainingJob


@pytest.mark.parametrize(
    ("rows", "remainder", "steps", "used"),
    [
        (96, "keep", 3, 96),
        (97, "keep", 4, 97),
        (97, "join", 3, 97),
        (98, "join", 4, 98),
        (1, "join", 1, 1),
        (97, "drop", 3, 96),
        (31, "drop", 0, 0),
        (0, "keep", 0, 0),
    ],
)
def test_the_rest_of_an_epoch(rows, remainder, steps, used):
    schedule = Schedule(batch_size=32, remainder=remainder)
    assert (schedule.steps_of(rows, 0, 1), schedule.rows_of(rows, 0, 1)) == (steps, used)


def test_draws_are_the_steps_of_an_epoch():
    schedule = Schedule(batch_size=32, draws=5)
    assert (schedule.steps_of(1000, 0, 2), schedule.rows_of(1000, 0, 2)) == (5, 160)
    assert (schedule.steps_of(10, 0, 2), schedule.rows_of(10, 0, 2)) == (5, 50)
    assert (schedule.steps_of(0, 0, 2), schedule.rows_of(0, 0, 2)) == (0, 0)


@given(workers=st.integers(1, 40), more=st.integers(0, 300))
def test_the_parts_of_a_batch_over_all_workers_are_even_and_add_up(workers, more):
    schedule = Schedule(batch_total=workers + more)
    parts = [schedule.batch_of(rank, workers) for rank in range(workers)]
    assert sum(parts) == workers + more
    assert parts == sorted(parts, reverse=True)
    assert parts[0] - parts[-1] <= 1
    assert parts[-1] >= 1


@given(
    schedule=st.builds(
        Schedule,
        remainder=st.sampled_from(REMAINDERS),
        draws=st.none() | st.integers(1, 9),
        batch_total=st.none() | st.integers(1, 99),
        class_weight=st.dictionaries(st.integers(0, 9), st.floats(0, 2)),
    )
)
def test_a_schedule_survives_json(schedule):
    assert Schedule.from_json(schedule.to_json()) == schedule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"remainder": "dorp"}, r"`remainder` must be one of 'keep', 'join', 'drop'.*'dorp'.*Did you mean 'drop'"),
        ({"draws": 0}, r"`draws` must be a whole number of at least 1. Received: 0"),
        ({"batch_total": 2.5}, r"`batchTotal` must be a whole number of at least 1. Received: 2.5"),
    ],
)
def test_values_without_a_meaning_are_refused(options, message):
    with pytest.raises(JobError, match=message):
        Schedule(**options)


def test_a_batch_that_is_smaller_than_the_workers_are_many_is_refused():
    with pytest.raises(
        JobError, match=r"`batchTotal` must be at least numWorkers.*3.*Received: 2.*lower numWorkers to 2"
    ):
        TrainingJob(
            model=ModelSource(b"", "jax"),
            columns=Columns((Slot(None, ("x",)),)),
            schedule=Schedule(batch_total=2),
            exchange=ExchangePlan.named("allreduce"),
            workers=3,
        )


@pytest.mark.parametrize(
    ("validation_lap", "steps"), [(None, [1, 2, 3, 4, 5, 6]), (0, [5]), (2, [2, 4, 5, 6]), (3, [3, 5, 6])]
)
def test_validation_rows_are_evaluated_where_the_schedule_says(validation_lap, steps):
    schedule = Schedule(lap=1, validation_lap=validation_lap)
    assert [step for step in range(1, 7) if schedule.validates_after(step, ends_epoch=step == 5)] == steps
