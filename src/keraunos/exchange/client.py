"""A member's side of the job: joining, reporting, ending, all its waiting. Runs on workers, in the thread that trains.

`Client` is a context manager and belongs to one thread. Every wait has a deadline, and ends at once when the driver
says stop. Whoever else has something to do while the member waits (the links to the slices, a slice that this worker
hosts) attends to it through `attend`. What it may wait for is in `waits`; what it is told without having asked has one
handler per kind, which is given with `on`.
"""

from __future__ import annotations

import contextlib
import os
import socket as sockets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange import messages
from keraunos.exchange.content import Content, Handlers
from keraunos.exchange.kept import Kept
from keraunos.exchange.letters import Post
from keraunos.exchange.link import Link
from keraunos.exchange.message_parts import ShardFacts, SliceAddress
from keraunos.exchange.pulse import Pulse
from keraunos.exchange.shared_memory import host_mark
from keraunos.exchange.silence import Silence
from keraunos.exchange.tally import Tally
from keraunos.exchange.waits import Wait
from keraunos.exchange.wire import CHUNK_BYTES, SUPERSEDED, Message, chunks, pack_arrays, pack_typed, unpack_typed
from keraunos.job.course import Leg
from keraunos.parameters import Vector

# A waiting worker first looks again and again, giving its core to whoever wants it, because waking an idle core
# costs more than a whole round of a small model; then it sleeps until something arrives.
SPIN_SECONDS = 0.02
_SLEEP_MS = 1000
_NAP_MS = 20
# Whoever leaves waits so long for the driver to know.
_LEAVE_SECONDS = 15.0
# After so long without an answer a question is asked again.
ASK_AGAIN_SECONDS = 5.0
# How many pieces of a blob are on their way at once.
_WINDOW = 8

Found = TypeVar("Found")
Said = TypeVar("Said", bound=Content)


class HasFile(Protocol):
    """Anything with a file descriptor, such as a plain socket."""

    def fileno(self) -> int:
        """The file descriptor."""


class Stopped(ExchangeError):  # noqa: N818 - being stopped is no error
    """The driver ended the job; there is nothing left to do or to report."""


class Superseded(ExchangeError):  # noqa: N818 - says what happened to this worker
    """A newer incarnation of this rank has taken over."""


class StateLost(ExchangeError):  # noqa: N818 - says what happened
    """Nobody is left who has the weights and the optimizer's state to continue from."""


class Client:
    """One rank's connection to the coordinator.

    `control` is what the driver decided last. `last_words` is called where another has taken this rank, before that is
    raised.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        rank: int,
        incarnation: int,
        *,
        share_memory: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        self.rank = rank
        self.incarnation = incarnation
        self.mark = host_mark() if share_memory else None
        self.control: messages.Go | None = None
        self.released = False
        self._clock = clock
        self._stack = ExitStack()
        self._attendants: list[tuple[zmq.Socket[bytes] | HasFile | None, Callable[[], bool]]] = []
        self._handlers: Handlers[Message, None] = Handlers()
        self._handlers.on(messages.Go, self._go)
        self._handlers.on(messages.Release, self._release)
        self._handlers.on(messages.Stop, self._stop)
        self._inbox: list[Message] = []
        self._silence = Silence(clock())
        self._post = Post()
        self._standing: messages.Alive | None = None
        self._told = 0
        self.tally = Tally()
        self.waited = 0.0
        self.on_sleep: Callable[[bool], None] | None = None
        self.last_words: Callable[[], None] | None = None
        self.spins = True

    def __enter__(self) -> Self:
        with self._stack:
            self.context: zmq.Context[zmq.Socket[bytes]] = self._stack.enter_context(zmq.Context())
            self._link = self._stack.enter_context(Link(self.context, self.connection, self.rank, self.incarnation))
            self._link.ends_with_server = True
            self._link.tally = self.tally
            self._pulse = self._stack.enter_context(
                Pulse(self.context, self.connection, self.rank, self.incarnation, self.tally)
            )
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def patience(self) -> float:
        """For how many seconds a driver that is there but silent is waited for."""
        return self._link.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._link.patience = seconds

    def attend(self, socket: zmq.Socket[bytes] | HasFile | None, work: Callable[[], bool]) -> None:
        """Call `work` while waiting, which says whether it did something; `socket` wakes a sleeping worker up."""
        self._attendants.append((socket, work))

    def dismiss(self) -> None:
        """Attend to nothing else any more."""
        self._attendants.clear()
        self.on_sleep = None

    def on(self, said: type[Said], handler: Callable[[Message, Said], None]) -> None:
        """Call `handler` for such messages of the coordinator that are here, then whenever this worker listens."""
        self._handlers.on(said, handler)
        here = [message for message in self._inbox if message.kind is said.kind]
        self._inbox = [message for message in self._inbox if message.kind is not said.kind]
        for message in here:
            handler(message, said.of(message.body))

    def hello(self, versions: Mapping[str, str]) -> Mapping[str, int]:
        """Join the job; gives the sizes of what there is to fetch."""
        self._say(messages.Hello(sockets.gethostname(), self.mark, self._pulse.name, versions))
        _, welcome = self._wait(messages.Welcome, Wait.WELCOME)
        self._pulse.start()
        return welcome.sizes

    def fetch(self, name: str, start: int, stop: int) -> bytearray:
        """Bytes `start` to `stop` of something that the coordinator has."""
        fetched = bytearray(stop - start)
        missing = deque(range(0, len(fetched), CHUNK_BYTES))
        asked: set[int] = set()
        body = messages.Fetch(name).body()

        def ask(place: int) -> None:
            self._link.send(messages.Fetch.kind, offset=start + place, body=body)

        def ask_again() -> None:
            for place in asked:
                ask(place)

        while missing or asked:
            while missing and len(asked) < _WINDOW:
                asked.add(missing[0])
                ask(missing.popleft())
            message, _ = self._wait(messages.Blob, Wait.BLOB, again=ask_again)
            place = message.offset - start
            if place not in asked:
                continue
            asked.remove(place)
            piece = bytes(message.payload) if message.payload is not None else b""
            length = min(len(piece), len(fetched) - place)
            fetched[place : place + length] = piece[:length]
        return fetched

    def ready(self, shard: ShardFacts | None, slice_: SliceAddress | None = None) -> messages.Start:
        """Say that the rows are read and the model is built, or where a slice is; the answer: training starts."""
        self._say(messages.Ready(shard, slice_))
        _, start = self._wait(messages.Start, Wait.START)
        if start.decided is not None:
            self.control = start.decided
        return start

    def report(
        self, leg: Leg, round_: int, rows: int, metrics: Sequence[npt.NDArray[np.float64]], *, so_far: bool
    ) -> None:
        """Tell the driver how far this rank is, and the metrics' state: of a whole part of the lap, or `so_far`."""
        shapes, buffer = pack_arrays(metrics)
        report = messages.Report(rows, round_, leg.epoch, leg.index, list(shapes), so_far, self.tally)
        self._say(report, leg.number, payload=buffer)

    def report_losses(self, first_step: int, losses: npt.NDArray[np.float64]) -> None:
        """Tell the driver the losses of consecutive steps and their rows, a row of `losses` for each step."""
        for start, stop in chunks(len(losses), losses[:1].nbytes):
            self._say(messages.Losses(), first_step + start, payload=np.array(losses[start:stop], np.float64))

    def end_lap(
        self,
        leg: Leg,
        rows: int,
        metrics: Sequence[npt.NDArray[np.float64]],
        validation: Sequence[npt.NDArray[np.float64]],
        *,
        skipped: int,
        trained: bool,
    ) -> None:
        """Tell the driver that a lap is done: the rest of its metrics, those of the validation rows, skipped rows."""
        shapes, buffer = pack_arrays([*metrics, *validation])
        lap = messages.Lap(
            rows=rows,
            epoch=leg.epoch,
            lap=leg.index,
            step=leg.step + leg.stop - leg.first,
            ends_epoch=leg.ends_epoch,
            final=leg.final,
            skipped=skipped,
            trained=trained,
            shapes=list(shapes),
            split=len(metrics),
            tally=self.tally,
        )
        self._say(lap, leg.number, payload=buffer)

    def wait_for_go(self, lap: int) -> messages.Go:
        """What the driver decided after that lap."""
        return self.wait_until(lambda: self.control if self.control and self.control.lap >= lap else None, Wait.GO)

    def poll_control(self) -> messages.Go | None:
        """The driver's latest decision, without waiting for one."""
        self._listen()
        return self.control

    def send_parameters(self, vector: Vector, start: int = 0) -> None:
        """Send the driver parameters, which lie at `start` in the whole vector; they are copied."""
        for first, last in chunks(vector.size, vector.itemsize):
            piece = messages.Parameters(complete=last == vector.size)
            self._say(piece, offset=start + first, payload=np.array(vector[first:last]))

    def send_state(self, round_: int, arrays: Sequence[npt.NDArray[Any]], target: int | None = None) -> None:
        """Leave weights and optimizer state, as they are before a round, with the driver: this rank's or another's."""
        self._send_arrays(round_, arrays, self.rank if target is None else target)

    def send_last_state(self, round_: int, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Give the driver the optimizer state that training led to."""
        self._send_arrays(round_, arrays, self.rank, last=True)

    def save(self, round_: int, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Give the driver weights and optimizer state, as they are before a round, to write down."""
        self._send_arrays(round_, arrays, self.rank, save=True)

    def save_slice(self, round_: int, kept: Kept) -> None:
        """Give the driver what a slice is before a round, to write down."""
        self._send_arrays(round_, kept.arrays, self.rank, save=True, kept=replace(kept, arrays=[]))

    def miss(self, round_: int) -> None:
        """Tell the driver that the round before which to save was over when it was announced."""
        self._say(messages.Missed(), round_)

    def _send_arrays(
        self,
        round_: int,
        arrays: Sequence[npt.NDArray[Any]],
        target: int,
        *,
        save: bool = False,
        last: bool = False,
        kept: Kept | None = None,
    ) -> None:
        described, buffer = pack_typed(arrays)
        state = messages.State(target, buffer.size, described, save=save, last=last, slice=kept)
        for start, stop in chunks(buffer.size, 1):
            piece = replace(state, complete=stop == buffer.size)
            self._say(piece, round_, start, buffer[start:stop])

    def ask_for_state(self, round_: int, *, from_others: bool) -> tuple[int, list[npt.NDArray[Any]]] | None:
        """What this rank left with the driver, or another holds now: the round it is from, and the arrays."""
        self._say(messages.Ask(from_others), round_)
        message, held = self._wait(messages.HeldState, Wait.HELD)
        return (message.round, unpack_typed(held.arrays, self.fetch("state", 0, held.size))) if held.size else None

    def tell_norm(self, round_: int, value: float) -> None:
        """Tell the other slices this one's part of a round's squared norm."""
        self._say(messages.Norm(float(value)), round_)

    def done(self, *, wait: bool) -> None:
        """Say that this rank has trained to the end, and with `wait` wait until all have and the result is home."""
        self._say(messages.Done())
        if wait:
            self.wait_until(lambda: self.released or None, Wait.RELEASE)

    def failed(self, failure: messages.Failed) -> None:
        """Tell the driver why this worker ends, and wait until it knows; raises where it cannot be told."""
        self._say(failure)
        with contextlib.suppress(Stopped):
            self.wait_until(lambda: None, Wait.STOP)

    def diverged(self, round_: int, found: messages.Diverged) -> NoReturn:
        """Tell the driver what is not finite, and attend to everything until it ends the job: raises `Stopped`."""
        self._say(found, round_)
        self.wait_until(lambda: None, Wait.END)
        raise AssertionError

    def bye(self, contributed: Mapping[int, int] | None = None) -> None:
        """Leave the job in good order: once the driver knows, or cannot be told.

        `contributed` is how many rows of each rank were applied to the slice that this member has hosted.
        """
        self.dismiss()
        self._say(messages.Bye(dict(contributed or {})))
        deadline = self._clock() + _LEAVE_SECONDS
        with contextlib.suppress(Stopped):
            self.wait_until(lambda: self._post.confirmed or self._clock() > deadline or None, Wait.GOOD_BYE)

    def wait_until(
        self, condition: Callable[[], Found | None], what: Wait, again: Callable[[], None] | None = None
    ) -> Found:
        """Attend to everything until `condition` gives something; `again` asks for it once more after a while."""
        began = self._clock()
        self._silence.begin(began)
        spin_until = began + (SPIN_SECONDS if self.spins else 0.0)
        ask_at = began + ASK_AGAIN_SECONDS
        self.tally.waiting_for = what
        while (found := condition()) is None:
            if self._listen():
                continue
            now = self._clock()
            if now < spin_until:
                os.sched_yield()
                continue
            if self._silence.grow(now):
                self._link.check_there(self._silence.seconds)
            if self._silence.seconds > self.patience:
                raise ExchangeError(
                    f"Nothing was heard from the driver at {self._link.address} for {self._silence.seconds:.0f} s "
                    f"while waiting for {what} (driverPatience); the driver stands still, or the network between it "
                    "and this worker does."
                )
            if again is not None and now > ask_at:
                ask_at = now + ASK_AGAIN_SECONDS
                again()
            self._send_again(now)
            self._sleep(condition)
        self.tally.waiting_for = ""
        self.waited += self._clock() - began
        return found

    def _say(self, said: Content, round_: int = 0, offset: int = 0, payload: npt.NDArray[Any] | None = None) -> None:
        """Send the coordinator a letter; a payload is never written to again."""
        letter = said.message(self.rank, self.incarnation, round_, offset=offset, payload=payload)
        self._transmit(self._post.stamp(letter, self._clock()))

    def _transmit(self, letter: Message) -> None:
        self.tally.sent = f"{letter.kind.name} {letter.round}"
        self._link.send(letter.kind, letter.round, letter.offset, letter.body, letter.payload, letter.number)

    def _send_again(self, now: float) -> None:
        for letter in self._post.overdue(now):
            self._transmit(letter)

    def _compare(self) -> None:
        """Compare with the coordinator, by its last sign of life, what either side has sent and got."""
        if self._standing is None:
            return
        standing, self._standing = self._standing, None
        self._post.confirm(standing.got, self._clock())
        missed = standing.sent > self._post.got
        if missed or self._post.got > self._told:
            self._told = self._post.got
            self._link.send(messages.Got.kind, body=messages.Got(self._post.got, missed).body())

    def _wait(self, said: type[Said], what: Wait, again: Callable[[], None] | None = None) -> tuple[Message, Said]:
        """The answer of that kind, which nobody handles but who has asked."""

        def taken() -> Message | None:
            for index, message in enumerate(self._inbox):
                if message.kind is said.kind:
                    return self._inbox.pop(index)
            return None

        message = self.wait_until(taken, what, again)
        return message, said.of(message.body)

    def _listen(self) -> bool:
        """Take what is here; whether there was something."""
        if self._pulse.failure is not None:
            raise RuntimeError("This worker can give no sign of life any more.") from self._pulse.failure
        some = False
        for _, work in self._attendants:
            some |= work()
        while (message := self._link.receive()) is not None:
            some = True
            self._silence.end()
            if message.kind is messages.Alive.kind:
                self._standing = messages.Alive.of(message.body)
            elif self._post.arrives(message.number):
                self.tally.received = f"{message.kind.name} {message.round}"
                self._keep(message)
        self._compare()
        return some

    def _sleep(self, condition: Callable[[], object]) -> None:
        if self.on_sleep is None:
            self._poll(_SLEEP_MS)
            return
        self.on_sleep(True)  # noqa: FBT003 - it is the whole message
        try:
            # Whoever rang before this worker said that it sleeps did not wake it; a ring in between is found soon.
            if not self._listen() and condition() is None:
                self._poll(_NAP_MS)
        finally:
            self.on_sleep(False)  # noqa: FBT003 - it is the whole message

    def _poll(self, timeout_ms: int) -> None:
        poller = zmq.Poller()
        poller.register(self._link.socket, zmq.POLLIN)
        for socket, _ in self._attendants:
            if socket is not None:
                poller.register(socket, zmq.POLLIN)
        poller.poll(timeout_ms)

    def _keep(self, message: Message) -> None:
        handler = self._handlers.of(message.kind)
        if handler is None:
            self._inbox.append(message)
        else:
            handler(message, messages.content_of(message))

    def _go(self, _: Message, decided: messages.Go) -> None:
        self.control = decided

    def _release(self, _: Message, __: messages.Release) -> None:
        self.released = True

    def _stop(self, _: Message, stop: messages.Stop) -> None:
        if stop.reason != SUPERSEDED:
            raise Stopped(stop.reason)
        if self.last_words is not None:
            self.last_words()
        raise Superseded(stop.reason)
