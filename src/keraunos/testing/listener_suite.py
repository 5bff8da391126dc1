"""Tests for a listener: it accepts all kinds of events, of consecutive fits and of several fits at once.

A test class inherits `ListenerSuite` and creates the listener. It receives events as in a fit: one after the other,
from a thread of the fit.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from keraunos.launch.fit_events import check_listeners
from keraunos.telemetry.events import (
    DIVERGED,
    FAILED,
    KINDS,
    TRAINED,
    CheckpointWritten,
    Diverged,
    Ended,
    EpochClosed,
    Expected,
    FitEvent,
    LapClosed,
    Progressed,
    RankProgress,
    Resumed,
    Started,
    Warned,
    WorkerJoined,
    WorkerLeftOut,
    WorkerLost,
    WorkerReady,
    WorkerReturned,
    WorkerSlow,
)
from keraunos.telemetry.listener import Listener
from keraunos.telemetry.stream import EventStream

PATIENCE_S = 30.0
HOST = "worker-host"


class ListenerSuite:
    """Inherit it and define the fixture `listener`."""

    @pytest.fixture
    def listener(self) -> Listener:
        """Returns a new listener."""
        raise NotImplementedError

    def test_a_fit_takes_it(self, listener: Listener) -> None:
        assert list(check_listeners([listener])) == [listener]

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_each_kind_of_event_is_taken(self, listener: Listener, kind: str) -> None:
        hear(listener, [each for each in whole_fit() if each.kind in {"started", kind, "ended"}])

    def test_a_whole_fit_is_taken(self, listener: Listener) -> None:
        hear(listener, whole_fit())

    def test_a_fit_that_fails_before_it_begins_is_taken(self, listener: Listener) -> None:
        started, *_ = failed_fit()
        assert isinstance(started, Started)
        assert started.parameters is None
        hear(listener, failed_fit())

    def test_numbers_that_are_not_finite_are_taken(self, listener: Listener) -> None:
        hear(listener, diverged_fit())

    def test_fits_one_after_the_other_are_taken(self, listener: Listener) -> None:
        for events in (whole_fit(), failed_fit(), diverged_fit(), whole_fit()):
            hear(listener, events)

    def test_fits_at_once_are_taken(self, listener: Listener) -> None:
        together = _Together(listener)
        with told(together) as one, told(together) as other:
            for mine, others in zip(whole_fit(), whole_fit(), strict=True):
                one.publish(mine)
                other.publish(others)

    def test_events_are_left_as_they_are(self, listener: Listener) -> None:
        """All listeners and the history receive the same object."""
        events = whole_fit()
        before = copy.deepcopy(events)
        hear(listener, events)
        assert events == before

    def test_no_thread_is_left_when_it_is_closed(self, listener: Listener) -> None:
        before = set(threading.enumerate())
        hear(listener, whole_fit())
        left = set(threading.enumerate()) - before
        for each in left:
            each.join(PATIENCE_S)
        assert [each.name for each in left if each.is_alive()] == []


class _Together(Listener):
    """Lets two fits send their events to a listener in step, so that the fits overlap."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._both = threading.Barrier(2)

    def on_event(self, event: FitEvent) -> None:
        self._both.wait(PATIENCE_S)
        self._listener.on_event(event)

    def close(self) -> None:
        self._listener.close()


def hear(listener: Listener, events: Sequence[FitEvent]) -> None:
    """Send a fit's events to a listener; fail if it raises or takes too long."""
    with told(listener) as stream:
        for event in events:
            stream.publish(event)


@contextmanager
def told(listener: Listener) -> Iterator[EventStream]:
    """Yield a fit's stream with one listener, which must have received every event some seconds after the end."""
    before = set(threading.enumerate())
    with EventStream(check_listeners([listener]), leave_seconds=PATIENCE_S) as stream:
        yield stream
    assert stream.unheard == [(0, 0)], "the listener raised, or events were dropped; see the log"
    hearing = {each for each in threading.enumerate() if each.name == "keraunos-listener"}
    assert not hearing - before, f"the listener still ran {PATIENCE_S:.0f} s after the end of the fit"


def whole_fit() -> list[FitEvent]:
    """Returns the events of a fit of two workers in which every event that can precede `Ended` happens."""
    return [
        started(parameters=1000),
        Resumed(checkpoint=3, epochs=({"loss": 1.0, "val_loss": 1.5},)),
        *(WorkerJoined(rank=rank, host=HOST) for rank in range(2)),
        *(WorkerReady(rank=rank, host=HOST, rows=40, validation_rows=10) for rank in range(2)),
        Expected(rows=160, epochs=2),
        Progressed(epoch=1, rows=0, metrics={}),
        Progressed(epoch=1, rows=30, metrics={"loss": 0.8}, ranks=tuple(_ranks())),
        WorkerSlow(message="Rank 1 is slow.", rank=1, host=HOST, seconds_per_step=0.5, median=0.1),
        WorkerLost(message="Rank 1 is silent.", rank=1, host=HOST, seconds=12.5),
        WorkerReturned(message="Rank 1 is back.", rank=1, host=HOST),
        WorkerReturned(message="Rank 1 is heard again.", rank=1, host=HOST, seconds=3.5),
        WorkerLeftOut(message="Training goes on without rank 1.", rank=1, host=HOST, epoch=1, rows=40),
        Warned(message="Something that the user should know: “100 %”."),
        LapClosed(epoch=1, step=10, rows=160, metrics={"loss": 0.7}, epoch_metrics={"loss": 0.75}, last=True),
        EpochClosed(epoch=1, metrics={"loss": 0.75, "val_loss": 1.2}),
        CheckpointWritten(number=4),
        Diverged(message="The loss is not finite.", reason="the loss of epoch 2 is nan"),
        Ended(how=TRAINED, skipped_rows=8, lost_rows=40),
    ]


def failed_fit() -> list[FitEvent]:
    """Returns the events of a fit that could not be launched."""
    return [started(parameters=None), Ended(how=FAILED, why="ModelError: The model is not compiled.")]


def diverged_fit() -> list[FitEvent]:
    """Returns the events of a fit whose loss was infinite, and then NaN."""
    return [
        started(parameters=1),
        Progressed(epoch=0, rows=8, metrics={"loss": math.inf}),
        EpochClosed(epoch=0, metrics={"loss": math.nan, "accuracy": -math.inf}, diverged=True),
        Diverged(message="The loss is not finite.", reason="the loss of epoch 1 is nan"),
        Ended(how=DIVERGED, why="the loss of epoch 1 is nan"),
    ]


def started(parameters: int | None) -> Started:
    """Returns the first event of a fit."""
    return Started(
        job={"schedule": {"epochs": 2, "batch_size": 8}, "columns": {"inputs": ["x"]}},
        plan={"send": "gradients", "every": 1, "meet": "synchronous", "rule": {"name": "own", "options": {}}},
        workers=2,
        servers="driver",
        parameters=parameters,
    )


def _ranks() -> list[RankProgress]:
    return [
        RankProgress(0, HOST, rows=20, steps=3, seconds_per_step=0.0, waiting=0.0),
        RankProgress(1, HOST, 10, 2, 0.25, 0.5, bytes_sent=1 << 40, bytes_received=0, bytes_shared=1, staleness=3),
    ]
