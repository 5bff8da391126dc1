"""Laps close in order, once, with everything that was measured in them, however the workers' reports interleave."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.messages import Lap, Report
from keraunos.exchange.tally import Tally
from keraunos.job.course import Course
from keraunos.job.schedule import Schedule
from keraunos.launch.lap_book import LapBook
from keraunos.learners.graph_home import RowMeans


def report_of(leg, *, so_far=False):
    return Report(rows=0, round=0, epoch=leg.epoch, lap=leg.index, shapes=[], so_far=so_far, tally=Tally())


def end_of(leg):
    return Lap(
        rows=0,
        epoch=leg.epoch,
        lap=leg.index,
        step=leg.step + leg.stop - leg.first,
        ends_epoch=leg.ends_epoch,
        final=leg.final,
        skipped=0,
        trained=True,
        shapes=[],
        split=0,
        tally=Tally(),
    )


def reports(course):
    """What one rank says on its way: its steps' losses are their numbers, each over one row."""
    for leg in map(course.leg, range(course.laps)):
        sums = [np.array([float(step), 1.0]) for step in range(leg.step, leg.step + leg.stop - leg.first)]
        for each in sums[:-1]:
            yield "measure", leg, [each]
        yield "end", leg, sums[-1:]


def reopened(book):
    """The same book from what it kept."""
    again = book.copy()
    again.reader = book.reader
    return again


def follow(courses, order, between=lambda book: book):
    """Let ranks speak in that order; the laps that close. `between` gives the book that goes on behind each word."""
    book = LapBook()
    book.reader = RowMeans(["loss"])
    streams = {rank: reports(course) for rank, course in enumerate(courses)}
    closed = []
    for choice in order:
        if not streams:
            break
        rank = sorted(streams)[choice % len(streams)]
        said = next(streams[rank], None)
        if said is None:
            del streams[rank]
        elif said[0] == "measure":
            book.measure(rank, report_of(said[1]), said[2])
            assert book.so_far()
        else:
            book.end(rank, end_of(said[1]), said[2], [np.array([float(rank), 1.0])])
        while (lap := book.close(set(streams))) is not None:
            closed.append(lap)
        book = between(book)
    assert not streams
    return closed


@st.composite
def orders(draw):
    """Who speaks next, for longer than anybody has something to say."""
    return itertools.chain(draw(st.lists(st.integers(0, 5), max_size=60)), itertools.count())


@given(
    orders(),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(1, 12),
)
def test_epochs_hold_everything_whoever_runs_ahead(order, lengths, lap, steps):
    courses = [Course(Schedule(epochs=2, lap=lap, steps=steps), 1, each) for each in lengths]
    closed = follow(courses, order)
    assert [each.number for each in closed] == list(range(len(closed)))
    assert [each.last for each in closed] == [False] * (len(closed) - 1) + [True]
    over = [each for each in closed if each.over]
    assert [each.epoch for each in over] == list(range(max(course.epochs for course in courses)))
    for each in over:
        done = [
            step
            for course in courses
            for step in range(each.epoch * course.epoch_steps, (each.epoch + 1) * course.epoch_steps)
            if step < course.steps
        ]
        assert each.epoch_logs["loss"] == pytest.approx(np.mean(done))
        on_it = [rank for rank, course in enumerate(courses) if each.epoch < course.epochs]
        assert each.epoch_logs["val_loss"] == pytest.approx(np.mean(on_it))
        whole = all((each.epoch + 1) * courses[rank].epoch_steps <= courses[rank].steps for rank in on_it)
        assert each.ends_epoch == whole


@given(
    st.lists(st.integers(0, 5), max_size=60),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.none() | st.integers(1, 4),
)
def test_a_book_that_was_kept_goes_on_as_the_same(choices, lengths, lap):
    courses = [Course(Schedule(epochs=2, lap=lap), 1, each) for each in lengths]
    kept, whole = (
        follow(courses, itertools.chain(choices, itertools.count()), between)
        for between in (reopened, lambda book: book)
    )
    assert kept == whole


@given(orders(), st.integers(1, 3))
def test_ranks_that_run_the_same_laps_close_each_of_them(order, workers):
    courses = [Course(Schedule(epochs=2, lap=3), 1, 7)] * workers
    closed = follow(courses, order)
    assert [(each.epoch, each.step, each.ends_epoch) for each in closed] == [
        (0, 3, False),
        (0, 6, False),
        (0, 7, True),
        (1, 9, False),
        (1, 12, False),
        (1, 14, True),
    ]
    assert [each.logs["loss"] for each in closed] == pytest.approx([1, 4, 6, 7.5, 10, 12.5])
    assert [each.epoch_logs["loss"] for each in closed] == pytest.approx([1, 2.5, 3, 7.5, 9, 10])


@given(
    orders(),
    st.lists(st.integers(1, 8), min_size=2, max_size=3),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(1, 12),
    st.integers(0, 30),
)
def test_the_epochs_of_the_others_end_without_one_that_is_lost(order, lengths, lap, steps, after):
    courses = [Course(Schedule(epochs=2, lap=lap, steps=steps), 1, each) for each in lengths]
    book = LapBook()
    book.reader = RowMeans(["loss"])
    streams = {rank: reports(course) for rank, course in enumerate(courses)}
    closed = []

    def close():
        while (ended := book.close(set(streams))) is not None:
            closed.append(ended)

    for number, choice in enumerate(order):
        if number == after and 0 in streams:
            del streams[0]
            book.forget(0)
            close()
        if not streams:
            break
        rank = sorted(streams)[choice % len(streams)]
        said = next(streams[rank], None)
        if said is None:
            del streams[rank]
        elif said[0] == "measure":
            book.measure(rank, report_of(said[1]), said[2])
        else:
            book.end(rank, end_of(said[1]), said[2], [])
        close()
    over = [each.epoch for each in closed if each.over]
    assert over == list(range(len(over)))
    assert len(over) >= max(course.epochs for course in courses[1:])
    assert [each.number for each in closed] == list(range(len(closed)))


def book_of():
    """A book, and its first lap."""
    book = LapBook()
    book.reader = RowMeans(["loss"])
    leg = Course(Schedule(epochs=1), 1, 9).leg(0)
    return book, leg


def state(losses):
    return [np.array([float(sum(losses)), float(len(losses))])]


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_what_is_said_so_far_is_replaced_by_what_comes_next(parts, data):
    plain, leg = book_of()
    told, _ = book_of()
    for part in parts:
        for stop in data.draw(st.lists(st.integers(1, len(part)).map(int), max_size=3).map(sorted)):
            told.measure(0, report_of(leg, so_far=True), state(part[:stop]))
            done = [loss for each in parts[: parts.index(part)] for loss in each] + part[:stop]
            assert told.so_far()["loss"] == pytest.approx(np.mean(done)) or parts.count(part) > 1
        for book in (plain, told):
            book.measure(0, report_of(leg), state(part))
    for book in (plain, told):
        book.end(0, end_of(leg), [], [])
    assert told.close({0}) == plain.close({0}) is not None


def test_what_a_lost_rank_had_measured_counts_once():
    book, leg = book_of()
    book.measure(0, report_of(leg, so_far=True), state([4.0]))
    assert reopened(book).so_far() == {"loss": 4.0}
    book.returns(0)
    book.measure(0, report_of(leg, so_far=True), state([1.0]))
    book.measure(0, report_of(leg, so_far=True), state([1.0, 1.0]))
    assert book.so_far() == {"loss": 2.0}
    book.end(0, end_of(leg), state([1.0, 1.0, 0.0]), [])
    assert book.close({0}).logs == {"loss": 1.5}


def test_of_a_rank_that_stays_away_all_that_it_said_counts():
    book, leg = book_of()
    book.measure(1, report_of(leg, so_far=True), state([4.0]))
    book.end(0, end_of(leg), state([1.0]), [])
    book.forget(1)
    assert book.close({0}).logs == {"loss": 2.5}


def test_a_lap_without_a_trained_round_is_not_measured():
    book, leg = book_of()
    book.measure(0, report_of(leg), state([4.0]))
    book.end(0, replace(end_of(leg), skipped=9, trained=False), state([4.0]), [])
    book.end(1, end_of(leg), state([1.0]), [])
    assert book.close({0, 1}).logs == {"loss": 1.0}
