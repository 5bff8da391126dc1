"""Slow ranks are named when one can be sure; the table has a line a rank."""

from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.tally import Tally
from keraunos.launch.rank_table import ENOUGH_STEPS, SLOW, RankTable, report_of, stragglers


def tally(seconds, steps=100, waited=10.0):
    return Tally(steps=steps + 1, timed=steps, busy=seconds * steps, waited=waited)


def test_the_slow_one_is_named_with_what_it_costs():
    (slow,) = stragglers({0: tally(0.1), 1: tally(0.11), 2: tally(0.3), 3: tally(0.09)})
    assert (slow.rank, slow.seconds, slow.median) == (2, 0.3, 0.1)
    assert abs(slow.cost - 20.0) < 1e-6


def test_of_two_the_slower_is_compared_with_the_faster():
    assert [each.rank for each in stragglers({0: tally(0.1), 1: tally(0.2)})] == [1]


def test_too_few_steps_or_too_little_time_say_nothing():
    assert stragglers({0: tally(0.1), 1: tally(9.0, steps=ENOUGH_STEPS - 1)}) == []
    assert stragglers({0: tally(1e-4, waited=0.0), 1: tally(1e-2, waited=0.0)}) == []
    assert stragglers({0: tally(9.0)}) == []


@given(st.dictionaries(st.integers(0, 9), st.floats(0.01, 10), max_size=10))
def test_most_are_never_slow(seconds):
    found = stragglers({rank: tally(each) for rank, each in seconds.items()})
    assert len(found) <= len(seconds) / 2
    assert all(each.seconds > SLOW * each.median for each in found)


def test_the_table_prints():
    moved = Tally(
        steps=101, timed=100, busy=9.0, waited=1.0, bytes_sent=999, bytes_received=12_345, bytes_shared=6 * 10**9
    )
    table = RankTable(
        [
            report_of(0, "first", moved, 1200, 0),
            report_of(1, "second", None, 5, 2),
        ]
    )
    assert len(table) == 2
    assert table[0].seconds_per_step == 0.09
    assert str(table).splitlines() == [
        "rank    host  rows  steps  s/step  waiting  returns   sent  received  shared",
        "   0   first  1200    101    0.09      10%        0  999 B   12.3 kB    6 GB",
        "   1  second     5      0       0       0%        2    0 B       0 B     0 B",
    ]
