"""The stream keeps the order, never waits, counts what a listener misses, and ends with the last event."""

import threading

import pytest

from keraunos.telemetry.events import Ended, Warned
from keraunos.telemetry.listener import Listener
from keraunos.telemetry.stream import EventStream


class Gate(Listener):
    """Takes one event and waits until it is let on."""

    def __init__(self):
        self.heard, self.came, self.free = [], threading.Event(), threading.Event()

    def on_event(self, event):
        self.heard.append(event)
        self.came.set()
        assert self.free.wait(60)


def warned(number):
    return Warned(message=str(number))


@pytest.mark.leaks
def test_a_full_queue_drops_events_but_never_the_last_one(caplog):
    slow = Gate()
    with EventStream([slow], queue_length=3) as stream:
        stream.publish(warned(0))
        assert slow.came.wait(60)
        for number in range(1, 10):
            stream.publish(warned(number))
        stream.publish(Ended(how="trained"))
        stream.publish(warned("behind the end"))
        ((dropped, _),) = stream.unheard
        slow.free.set()
    assert dropped == 6
    assert [event.message for event in slow.heard[:-1]] == ["0", "1", "2", "3"]
    assert slow.heard[-1].how == "trained"
    assert len([record for record in caplog.records if "is slow, and more than 3 events" in record.getMessage()]) == 1


@pytest.mark.leaks
def test_events_have_the_name_of_their_fit_and_their_time():
    gate, times = Gate(), iter([1.0, 2.5])
    gate.free.set()
    with EventStream([gate], clock=lambda: next(times)) as stream:
        stream.publish(warned(0))
        stream.publish(warned(1))
    assert [(event.fit, event.time) for event in gate.heard] == [(stream.fit, 1.0), (stream.fit, 2.5)]
    assert EventStream().fit != stream.fit


def test_who_is_attached_is_called_at_once_and_may_raise():
    heard = []
    with EventStream() as stream:
        with stream.attached(heard.append):
            stream.publish(warned(0))
            assert len(heard) == 1
        stream.publish(warned(1))
        assert len(heard) == 1

        def broken(event):
            raise ZeroDivisionError

        with stream.attached(broken), pytest.raises(ZeroDivisionError):
            stream.publish(warned(2))
