"""A member's signs of life: a small thread that says every two seconds how far it is. Runs on workers and on hosts.

It has a connection of its own, so that it speaks whatever the thread that trains does: compile for minutes, take a
long step, hang. Asked for it, it also says where every thread of the process is. What it tells are plain counters
that the training thread writes and nobody locks: a figure may be a moment old.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self

import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.link import Link
from keraunos.exchange.messages import MOST_TEXT, MOST_THREADS, Probe, Stacks, Stop
from keraunos.exchange.messages import Pulse as Beat
from keraunos.exchange.tally import Tally

PULSE_SECONDS = 2.0
_QUEUE_LENGTH = 8
_DEEPEST = 40


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
    def name(self) -> bytes:
        """What the coordinator knows this connection by."""
        return self._link.name

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
                self._say(Beat(self._tally))
            ready = dict(poller.poll(max(1, int((next_beat - self._clock()) * 1000))))
            if self._bell in ready or (self._link.socket in ready and not self._listen()):
                return

    def _listen(self) -> bool:
        """Answer what was asked; whether this member is still wanted."""
        with suppress(ExchangeError):
            while (message := self._link.receive()) is not None:
                if message.kind is Probe.kind:
                    self._say(Stacks(self._tally, stacks()))
                elif message.kind is Stop.kind:
                    return False
        return True

    def _say(self, said: Beat | Stacks) -> None:
        # Nobody takes it: there is a next one.
        with suppress(ExchangeError):
            self._link.send(said.kind, said.tally.round, body=said.body())


def stacks() -> tuple[str, ...]:
    """Where every other thread of this process is, the ends of long ones."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in list(sys._current_frames().items())[:MOST_THREADS]:
        if ident != threading.get_ident():
            text = "".join(traceback.format_stack(frame)[-_DEEPEST:])
            found.append(f"thread {names.get(ident, ident)}:\n{text[-MOST_TEXT:]}")
    return tuple(found)
