"""Sockets and a thread around the coordinator's state. Runs on the driver.

`Coordinator` is a context manager: inside it the job can be joined; outside it thread, sockets and port are gone. What
workers report is read from `events` by the thread that follows the fit.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.coordination import Action, Event, Send
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.endpoint import Endpoint
from keraunos.exchange.letters import MOST_KEPT, Post
from keraunos.exchange.messages import Alive, Bye, Got
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.wire import MALFORMED, Kind, Message

logger = logging.getLogger(__name__)

ALIVE_EVERY_SECONDS = 2
_LOOK_SECONDS = 0.2
# What the small thread of a member says, over a connection of its own.
_PULSES = frozenset({Kind.PULSE, Kind.STACKS})
# What may be lost: the next one says as much, or it is asked for again.
_NO_LETTERS = frozenset({Kind.ALIVE, Kind.BLOB, Kind.PROBE})


class Coordinator:
    """The one that a job's members speak to, over `endpoint`, in a thread of its own.

    Where one port must do for both, that thread also serves the slice that is to be reached over the same endpoint.
    """

    def __init__(
        self,
        state: CoordinatorState,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: Endpoint,
        clock: Callable[[], float] = time.monotonic,
        *,
        beside: SliceServer | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        self.state = state
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.uploaded = threading.Event()
        # For how many seconds the members have heard nothing from here, at most.
        self.longest_silence = 0.0
        self._context = context
        self._endpoint = endpoint
        self._clock = clock
        self._beside = beside
        self._on_failure = on_failure
        self._failure: Exception | None = None
        self._clients: dict[int, bytes] = {}
        self._posts: dict[int, Post] = {}
        self._commands: queue.SimpleQueue[Callable[[], Iterable[Action]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="keraunos-coordinator", daemon=True)

    def __enter__(self) -> Self:
        self._bell: zmq.Socket[bytes] = self._context.socket(zmq.PAIR)
        self._bell.bind("inproc://bell")
        self._ringer: zmq.Socket[bytes] = self._context.socket(zmq.PAIR)
        self._ringer.connect("inproc://bell")
        self._ringing = threading.Lock()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ring(None)
        self._thread.join()
        self._bell.close(0)
        self._ringer.close(0)

    @property
    def connection(self) -> dict[str, Any]:
        """All that a worker needs to connect, as plain data; it holds the job's secrets."""
        return self._endpoint.connection

    @property
    def dropped(self) -> int:
        """How many messages were not taken."""
        return self.state.dropped + self._endpoint.dropped

    @property
    def is_alive(self) -> bool:
        """Whether somebody answers the members."""
        return self._thread.is_alive()

    def command(self, command: Callable[[], Iterable[Action]]) -> None:
        """Let the coordinator's thread do something with the state."""
        if not self.is_alive:
            raise ExchangeError(f"The coordinator of the fit has failed: {self._failure!r}.") from self._failure
        self._ring(command)

    def collect(self, timeout: float, check: Callable[[], None] | None, ask: Callable[[], Iterable[Action]]) -> None:
        """Let `ask` ask for parameters, and wait until they are in `state.uploaded`.

        `check` is called while waiting, and may raise what keeps them from coming.
        """
        self.uploaded.clear()
        self.command(ask)
        deadline = self._clock() + timeout
        while not self.uploaded.wait(_LOOK_SECONDS):
            if check is not None:
                check()
            if self._clock() > deadline:
                missing = ", ".join(map(str, sorted(self.state.uploads_missing)))
                raise ExchangeError(
                    f"The parameters did not come home within {timeout:.0f} s: nothing was heard from member(s) "
                    f"{missing}, which hold them."
                )

    def _ring(self, command: Callable[[], Iterable[Action]] | None) -> None:
        with self._ringing:
            self._commands.put(command)
            self._ringer.send(b"")

    def _serve(self) -> None:
        try:
            self._answer()
        except Exception as error:
            logger.exception("The coordinator of a fit has failed.")
            self._failure = error
            if self._on_failure is not None:
                self._on_failure(error)

    def _answer(self) -> None:
        poller = zmq.Poller()
        poller.register(self._endpoint.socket, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        next_sign = last_sign = self._clock()
        while True:
            ready = dict(poller.poll(ALIVE_EVERY_SECONDS * 1000))
            now = self._clock()
            if now >= next_sign:
                self.longest_silence = max(self.longest_silence, now - last_sign)
                last_sign, next_sign = now, now + ALIVE_EVERY_SECONDS
                self._act(self.state.alive(), b"")
            if self._bell in ready:
                self._bell.recv()
                command = self._commands.get()
                if command is None:
                    return
                self._act(command(), b"")
            if self._beside is not None:
                self._beside.follow_commands()
            if self._endpoint.socket in ready:
                self._receive()

    def _receive(self) -> None:
        for client, message in self._endpoint.receive():
            if self._beside is not None and message.kind >= Kind.JOIN:
                self._beside.hear(client, message)
                continue
            try:
                self._take(client, message)
            except Exception:
                # Whatever is wrong with one message, the others are answered.
                self._endpoint.dropped += 1
                logger.exception("A message %s of rank %d could not be handled.", message.kind.name, message.rank)

    def _take(self, client: bytes, message: Message) -> None:
        known = self.state.members.get(message.rank)
        before = None if known is None else known.incarnation
        former = self._clients.get(message.rank)
        if known is not None and message.incarnation == before:
            # A rank is who joined as it: the same words from somebody else are a replay.
            own = known.pulse if message.kind in _PULSES else former
            if own != client:
                self._endpoint.dropped += 1
                return
            if not self._is_next(message):
                return
        actions = self.state.receive(message)
        known = self.state.members.get(message.rank)
        if known is not None and known.incarnation != before:
            # Only now: a message that was not taken gives nobody a rank.
            self._clients[message.rank] = client
            self._posts[message.rank] = Post(MOST_KEPT)
            self._posts[message.rank].arrives(message.number)
        self._act(actions, client, former)
        if message.kind is Bye.kind and known is not None:
            # Whoever leaves waits to hear that this is known.
            self._act([Send(message.rank, Alive().message())], client)

    def _is_next(self, message: Message) -> bool:
        """Whether a member's message is to be looked at: the letters before it are here, and it was not yet."""
        post = self._posts[message.rank]
        if message.kind is Got.kind:
            self._compare(message, post)
            return False
        if post.arrives(message.number):
            return True
        # Something was lost, here or on the way back: tell the member where this side stands.
        self._act([Send(message.rank, Alive().message())], b"")
        return False

    def _compare(self, message: Message, post: Post) -> None:
        try:
            said = Got.of(message.body)
        except MALFORMED:
            self._endpoint.dropped += 1
            return
        post.confirm(said.got)
        if said.again:
            for letter in post.after(said.got):
                self._endpoint.send(self._clients[message.rank], letter, copy=letter.payload is None)

    def _act(self, actions: Iterable[Action], sender: bytes, former: bytes | None = None) -> None:
        for action in actions:
            if isinstance(action, Event):
                if action.kind is Kind.PARAMETERS and not self.state.uploads_missing:
                    self.uploaded.set()
                self.events.put(action)
                continue
            client = sender if action.to_sender else former if action.to_former else self._address(action)
            if client is not None:
                message = action.message if action.to_sender or action.to_former else self._as_letter(action)
                self._endpoint.send(client, message, copy=message.payload is None)

    def _address(self, action: Send) -> bytes | None:
        known = self.state.members.get(action.rank)
        pulse = None if known is None else known.pulse
        return pulse if action.message.kind is Kind.PROBE else self._clients.get(action.rank)

    def _as_letter(self, action: Send) -> Message:
        message, post = action.message, self._posts[action.rank]
        if message.kind is Alive.kind:
            return post.standing.message(message.rank, message.incarnation)
        return message if message.kind in _NO_LETTERS else post.stamp(message)
