"""A stall is told once, when somebody waits and nobody has moved; moving ends it."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from keraunos.launch.watchdog import Watchdog


def barks(places, after=10.0, waiting=lambda tick: True):
    dog = Watchdog(after)
    return [tick for tick, place in enumerate(places) if dog.look(float(tick), place, waiting=waiting(tick))]


def test_a_stall_is_told_once():
    assert barks([0] * 100) == [10]


def test_every_stall_is_told():
    assert barks([0] * 20 + [1] * 20) == [10, 30]


def test_nobody_waits_nobody_barks():
    assert barks([0] * 100, waiting=lambda tick: False) == []


def test_a_driver_that_stood_still_saw_nothing():
    dog = Watchdog(10.0)
    dog.look(0.0, 0, waiting=True)
    assert not dog.look(5000.0, 0, waiting=True)


@given(st.lists(st.integers(0, 1), max_size=100))
def test_what_moves_often_enough_is_left_alone(places):
    longest = max((len(list(run)) for _, run in itertools.groupby(places)), default=0)
    assert bool(barks(places)) == (longest > 10)
