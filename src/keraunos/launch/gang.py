"""Slots of a Spark application, handed out whole. Runs on the driver.

A synchronous fit holds all its slots or none: two fits that each held half of them would wait for each other for
ever. Fits of one application therefore take their slots from one ledger, first come, first served.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from keraunos.launch import interrupts

_LOOK_SECONDS = 0.2


class Ledger:
    """The slots that fits of one application hold."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held = 0
        self._waiting: deque[object] = deque()

    @contextmanager
    def hold(self, slots: int, total: int) -> Iterator[None]:
        """Wait for `slots` of `total`, hold them, and give them back."""
        turn = object()
        with self._changed:
            self._waiting.append(turn)
            try:
                while not self._changed.wait_for(
                    lambda: self._waiting[0] is turn and self._held + slots <= max(total, slots), _LOOK_SECONDS
                ):
                    interrupts.check()
                self._held += slots
            finally:
                self._waiting.remove(turn)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._held -= slots
                self._changed.notify_all()


_ledgers: WeakKeyDictionary[object, Ledger] = WeakKeyDictionary()
_lock = threading.Lock()


def ledger_of(application: object) -> Ledger:
    """The one ledger of what `Session.application` is."""
    with _lock:
        return _ledgers.setdefault(application, Ledger())
