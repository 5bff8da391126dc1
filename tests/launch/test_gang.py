"""Fits of one SparkContext never each hold a part of the slots."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keraunos.launch.gang import Ledger, ledger_of


@settings(max_examples=20)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_never_more_than_all_slots_are_held_and_everyone_gets_a_turn(wanted):
    ledger, lock = Ledger(), threading.Lock()
    held, most, turns = 0, 0, 0

    def fit(slots):
        nonlocal held, most, turns
        with ledger.hold(slots, 4):
            with lock:
                held += slots
                most = max(most, held)
                turns += 1
            with lock:
                held -= slots

    with ThreadPoolExecutor(len(wanted)) as pool:
        for future in [pool.submit(fit, slots) for slots in wanted]:
            future.result(timeout=10)
    assert most <= 4
    assert turns == len(wanted)


def test_two_that_fit_together_run_together():
    ledger = Ledger()
    meet = threading.Barrier(2)

    def fit():
        with ledger.hold(1, 2):
            meet.wait(timeout=10)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(fit), pool.submit(fit)]:
            future.result(timeout=10)


def test_a_failed_fit_gives_its_slots_back():
    ledger = Ledger()

    def fail():
        with ledger.hold(2, 2):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with ledger.hold(2, 2):
        pass


def test_there_is_one_ledger_a_context():
    class Context:
        pass

    one, other = Context(), Context()
    assert ledger_of(one) is ledger_of(one)
    assert ledger_of(one) is not ledger_of(other)
