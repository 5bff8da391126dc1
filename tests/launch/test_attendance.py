"""Who is away is told once, and once again when it is back or lost; a driver that stood still accuses nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.launch.attendance import AWAY_SECONDS, Attendance, Change, Turn

TICK = 0.5


def watch(patience, heard, ticks, expected=(0,)):
    """Look every tick; `heard(rank, tick)` says whether there was a sign of a rank in it. The changes, with ticks."""
    attendance = Attendance(patience)
    signs = dict.fromkeys(expected, 1)
    told = [(0, each) for each in attendance.look(0.0, signs, expected)]
    for tick in range(1, ticks):
        for rank in expected:
            signs[rank] += heard(rank, tick)
        told += [(tick, each) for each in attendance.look(tick * TICK, signs, expected)]
    return told


def test_one_that_is_heard_is_there():
    assert watch(30, lambda rank, tick: tick % 4 == 0, 1000) == []


def test_one_that_falls_silent_is_away_and_then_lost():
    told = watch(30, lambda rank, tick: rank == 1 or tick < 10, 1000, expected=(0, 1))
    assert [(each.rank, each.turn) for _, each in told] == [(0, Turn.AWAY), (0, Turn.LOST)]
    assert [each.seconds for _, each in told] == [AWAY_SECONDS, 30]


def test_one_that_comes_back_is_told_with_how_long_it_took():
    told = watch(300, lambda rank, tick: not 10 <= tick < 50, 100)
    assert [each.turn for _, each in told] == [Turn.AWAY, Turn.BACK]
    assert told[1] == (50, Change(0, Turn.BACK, 41 * TICK))


def test_one_that_came_back_and_is_through_was_back():
    attendance = Attendance(300)
    attendance.look(0.0, {0: 1}, [0])
    changes = [each for tick in range(1, 20) for each in attendance.look(float(tick), {0: 1}, [0])]
    changes += attendance.look(20.0, {0: 2}, [])
    assert [each.turn for each in changes] == [Turn.AWAY, Turn.BACK]


def test_whoever_is_not_expected_is_not_missed():
    attendance = Attendance(5)
    for tick in range(100):
        assert attendance.look(float(tick), {0: 1}, []) == []


def test_a_driver_that_stood_still_accuses_nobody():
    attendance = Attendance(30)
    attendance.look(0.0, {0: 1}, [0])
    assert attendance.look(10_000.0, {0: 1}, [0]) == []
    assert attendance.look(10_000.2, {0: 2}, [0]) == []


@pytest.mark.parametrize("patience", [5.0, 60.0])
def test_after_a_standstill_of_the_driver_everyone_has_the_whole_patience_to_be_heard_again(patience):
    attendance = Attendance(patience)
    before = [each / 2 for each in range(int(2 * patience))]
    after = [before[-1] + 10_000 + each for each in before]
    turns = [change.turn for now in before + after for change in attendance.look(now, {0: 1}, [0])]
    assert Turn.LOST not in turns
    assert [each.turn for each in attendance.look(after[-1] + 1, {0: 1}, [0])] == [Turn.LOST]


@pytest.mark.parametrize("patience", [5.0, 60.0])
@given(data=st.data())
def test_changes_alternate_and_nobody_is_lost_before_patience_ends(patience, data):
    signs = data.draw(st.lists(st.booleans(), min_size=1, max_size=300))
    told = watch(patience, lambda rank, tick: signs[tick - 1], len(signs) + 1)
    turns = [each.turn for _, each in told]
    state = None
    for (_, each), turn in zip(told, turns, strict=True):
        allowed = {None: {Turn.AWAY, Turn.LOST}, Turn.AWAY: {Turn.BACK, Turn.LOST}, Turn.BACK: {Turn.AWAY, Turn.LOST}}
        assert turn in allowed[state]
        assert turn is not Turn.LOST or each.seconds >= patience
        state = turn
        if turn is Turn.LOST:
            assert each is told[-1][1], "nothing is said of one that is lost"
    longest = run = 0
    for each in signs:
        run = 0 if each else run + 1
        longest = max(longest, run)
    assert (Turn.LOST in turns) == (longest * TICK >= patience)
