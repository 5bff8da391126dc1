"""A rank's way: every step is in one lap and one round, and the number of rounds says where a rank is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.errors import JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.course import Course
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob

schedules = st.builds(
    Schedule,
    epochs=st.integers(1, 4),
    lap=st.none() | st.integers(1, 12),
    steps=st.none() | st.integers(1, 40),
)
lengths = st.sampled_from([1, 2, 3, 5, 50, "epoch"])


def walk(course):
    """Every round of a course: its lap, its number there, and the training's steps in it."""
    for number in range(course.laps):
        leg = course.leg(number)
        for index in range(leg.rounds):
            first = leg.first + index * course.every
            stop = min(first + course.every, leg.stop)
            yield leg, index, range(leg.step - leg.first + first, leg.step - leg.first + stop)


@given(schedules, lengths, st.integers(1, 15))
def test_every_step_is_in_one_round_and_none_is_beyond_the_last(schedule, every, epoch_steps):
    course = Course(schedule, every, epoch_steps)
    total = schedule.epochs * epoch_steps if schedule.steps is None else schedule.steps
    steps = list(itertools.chain.from_iterable(steps for _, _, steps in walk(course)))
    assert steps == list(range(total))
    lengths = [len(steps) for _, _, steps in walk(course)]
    assert max(lengths) <= (epoch_steps if every == "epoch" else every)
    assert course.epochs == -(-total // epoch_steps)


@given(schedules, lengths, st.integers(1, 15))
def test_laps_end_with_epochs_and_after_as_many_steps_as_asked(schedule, every, epoch_steps):
    course = Course(schedule, every, epoch_steps)
    legs = [course.leg(number) for number in range(course.laps)]
    ends = {end for length in (epoch_steps, schedule.lap) if length for end in range(length, course.steps, length)}
    assert [leg.step + leg.stop - leg.first for leg in legs] == [*sorted(ends), course.steps]
    assert [leg.step for leg in legs] == [0, *sorted(ends)]
    assert all(leg.ends_epoch == (leg.stop == epoch_steps) for leg in legs)
    assert all(leg.step == leg.epoch * epoch_steps + leg.first for leg in legs)
    assert [leg.final for leg in legs] == [False] * (course.laps - 1) + [True]
    for before, after in itertools.pairwise(legs):
        assert after.index == (0 if before.ends_epoch else before.index + 1)


@given(schedules, lengths, st.integers(1, 15))
def test_a_rank_finds_its_place_from_its_rounds(schedule, every, epoch_steps):
    course = Course(schedule, every, epoch_steps)
    places = [(leg.number, index) for leg, index, _ in walk(course)]
    assert [course.place(rounds) for rounds in range(len(places))] == places
    assert course.place(len(places)) == (course.laps, 0)


def test_a_rank_that_only_validates_takes_part_in_every_epoch():
    course = Course(Schedule(epochs=3, lap=2), 5, 0)
    assert [(leg.epoch, leg.rounds, leg.ends_epoch) for leg in map(course.leg, range(course.laps))] == [
        (0, 0, True),
        (1, 0, True),
        (2, 0, True),
    ]
    assert Course(Schedule(epochs=3, steps=7), 5, 0).laps == 1


def courses_of(rows, plan, **schedule):
    job = TrainingJob(
        model=ModelSource(b"", "jax"),
        columns=Columns((Slot(None, ("x",)),)),
        schedule=Schedule(batch_size=10, **schedule),
        exchange=ExchangePlan.named(plan),
        workers=len(rows),
    )
    return [Course.of(job, rows, rank) for rank in rows]


@pytest.mark.parametrize(("plan", "steps"), [("allreduce", [10, 10]), ("downpour", [10, 2])])
def test_only_ranks_that_wait_for_each_other_take_the_same_steps(plan, steps):
    rows = {0: 100, 1: 15}
    courses = courses_of(rows, plan)
    assert [course.steps for course in courses] == steps
    assert [course.rows(rows[rank], 10) for rank, course in enumerate(courses)] == [100, 15]


def test_rows_of_a_training_that_ends_within_an_epoch():
    rows = {0: 100, 1: 25}
    courses = courses_of(rows, "allreduce", steps=14)
    assert [course.rows(rows[rank], 10) for rank, course in enumerate(courses)] == [140, 50]


@pytest.mark.parametrize("name", ["lap", "steps"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_laps_and_steps_are_whole_numbers(name, value):
    with pytest.raises(JobError, match=rf"`{name}` must be a whole number of at least 1. Received: "):
        Schedule(**{name: value})
    assert Schedule.from_json(Schedule(lap=3, steps=7).to_json()) == Schedule(lap=3, steps=7)
