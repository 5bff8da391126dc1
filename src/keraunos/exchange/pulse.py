"""A member's signs of life: a small thread that says every two seconds how far it is. Runs on workers and on hosts.

It has a connection of its own, so that it speaks whatever the thread that trains does: compile for minutes, take a
long step, hang. Asked for it, it also says where every thread of the process is. What it tells are plain counters
that the training thread writes and nobody locks: a figure may be a moment old.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.link import Link
from keraunos.exchange.wire import Kind

PULSE_SECONDS = 2.0
_QUEUE_LENGTH = 8
_DEEPEST = 40
_MOST_THREADS = 64
_MOST_TEXT = 6000
_MOST_WORDS = 100


@dataclass(slots=True)
class Tally:
    """How far a member is, and what it did with its time; written by the thread that trains.

    `steps` are all that this rank has taken, those of an earlier incarnation included; `timed` are those of this
    incarnation whose time is in `busy` and `waited`: seconds of its own work, and of waiting for others.
    """

    round: int = 0
    rows: int = 0
    steps: int = 0
    timed: int = 0
    busy: float = 0.0
    waited: float = 0.0
    waiting_for: str = ""
    sent: str = ""
    received: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {name: getattr(self, name) for name in self.__slots__}

    def after(self, before: Tally | None) -> Tally:
        """This tally with the work that the same rank has done before, as an earlier incarnation."""
        if before is None:
            return self
        names = ("rows", "timed", "busy", "waited")
        sums = {name: getattr(self, name) + getattr(before, name) for name in names}
        return replace(self, steps=max(self.steps, before.steps), **sums)

    def newer(self, known: Tally | None) -> Tally:
        """This tally, or the one that is known already where this one was overtaken on its way."""
        return known if known is not None and (known.steps, known.round) > (self.steps, self.round) else self

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tally:
        """The tally that somebody told, checked: a `ValueError` for what is none."""
        counts = {name: int(data[name]) for name in ("round", "rows", "steps", "timed")}
        seconds = {name: float(data[name]) for name in ("busy", "waited")}
        words = {name: str(data[name])[:_MOST_WORDS] for name in ("waiting_for", "sent", "received")}
        numbers = [*counts.values(), *seconds.values()]
        if min(numbers) < 0 or max(numbers) > 1 << 62 or not all(map(math.isfinite, seconds.values())):
            raise ValueError("a tally's figures are out of range")
        found: dict[str, Any] = {**counts, **seconds, **words}
        return cls(**found)


class Pulse:
    """The thread and its connection; a context manager. It beats from `start` on."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        connection: Mapping[str, Any],
        rank: int,
        incarnation: int,
        tally: Tally,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._link = Link(context, connection, rank, incarnation)
        self._tally = tally
        self._clock = clock
        self._stack = ExitStack()
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.enter_context(self._link)
            self._link.socket.linger = 0
            # While nobody takes them there is no point in more of them.
            self._link.socket.sndhwm = _QUEUE_LENGTH
            self._link.socket.sndtimeo = 0
            self._link.patience = 0.0
            address = f"inproc://pulse-{id(self)}"
            self._bell: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.PAIR))
            self._bell.bind(address)
            self._ringer: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.PAIR))
            self._ringer.connect(address)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._ringer.send(b"")
            self._thread.join()
        self._stack.close()

    @property
    def name(self) -> str:
        """What the coordinator knows this connection by."""
        return self._link.name.hex()

    def start(self) -> None:
        """Beat, from now on; said twice, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="keraunos-pulse", daemon=True)
            self._thread.start()

    def _beat(self) -> None:
        try:
            self._beat_until_told()
        except Exception as error:  # noqa: BLE001 - the thread that trains raises it
            self.failure = error

    def _beat_until_told(self) -> None:
        poller = zmq.Poller()
        poller.register(self._link.socket, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        next_beat = self._clock()
        while True:
            if self._clock() >= next_beat:
                next_beat = self._clock() + PULSE_SECONDS
                self._say(Kind.PULSE, self._tally.to_json())
            ready = dict(poller.poll(max(1, int((next_beat - self._clock()) * 1000))))
            if self._bell in ready or (self._link.socket in ready and not self._listen()):
                return

    def _listen(self) -> bool:
        """Answer what was asked; whether this member is still wanted."""
        with suppress(ExchangeError):
            while (message := self._link.receive()) is not None:
                if message.kind is Kind.PROBE:
                    self._say(Kind.STACKS, {**self._tally.to_json(), "stacks": stacks()})
                elif message.kind is Kind.STOP:
                    return False
        return True

    def _say(self, kind: Kind, body: Mapping[str, Any]) -> None:
        # Nobody takes it: there is a next one.
        with suppress(ExchangeError):
            self._link.send(kind, int(body["round"]), body=body)


def stacks() -> list[str]:
    """Where every other thread of this process is, the ends of long ones."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in list(sys._current_frames().items())[:_MOST_THREADS]:
        if ident != threading.get_ident():
            text = "".join(traceback.format_stack(frame)[-_DEEPEST:])
            found.append(f"thread {names.get(ident, ident)}:\n{text[-_MOST_TEXT:]}")
    return found


def checked_stacks(data: Any) -> list[str]:
    """What a member told of its threads, as far as it is text of a sensible size."""
    return [str(each)[-2 * _MOST_TEXT :] for each in list(data)[:_MOST_THREADS]]
