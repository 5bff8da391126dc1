"""A member's side of the job: joining, reporting, ending, all its waiting. Runs on workers, in the thread that trains.

`Client` is a context manager and belongs to one thread. Every wait has a deadline, and ends at once when the driver
says stop. Whoever else has something to do while the member waits (the links to the slices, a slice that this worker
hosts) attends to it through `attend`.
"""

from __future__ import annotations

import contextlib
import os
import socket as sockets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.kept import Kept
from keraunos.exchange.letters import Post, standing_of
from keraunos.exchange.link import Link
from keraunos.exchange.pulse import Pulse
from keraunos.exchange.shared_memory import host_mark
from keraunos.exchange.silence import Silence
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import CHUNK_BYTES, SUPERSEDED, Kind, Message, chunks, pack_arrays, pack_typed, unpack_typed
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


class Stopped(ExchangeError):  # noqa: N818 - being stopped is no error
    """The driver ended the job; there is nothing left to do or to report."""


class Superseded(ExchangeError):  # noqa: N818 - says what happened to this worker
    """A newer incarnation of this rank has taken over."""


class StateLost(ExchangeError):  # noqa: N818 - says what happened
    """Nobody is left who has the weights and the optimizer's state to continue from."""


@dataclass(frozen=True)
class Control:
    """What the driver decided after a lap."""

    lap: int
    learning_rate: float | None
    last: bool


class Client:
    """One rank's connection to the coordinator."""

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
        self.control: Control | None = None
        self.released = False
        self._clock = clock
        self._stack = ExitStack()
        self._attendants: list[tuple[zmq.Socket[bytes] | None, Callable[[], bool]]] = []
        self._handlers: dict[Kind, Callable[[Message], None]] = {}
        self._inbox: list[Message] = []
        self._silence = Silence(clock())
        self._post = Post()
        self._standing: Mapping[str, Any] | None = None
        self._told = 0
        self.tally = Tally()
        self.waited = 0.0
        self.on_sleep: Callable[[bool], None] | None = None
        self.spins = True

    def __enter__(self) -> Self:
        with self._stack:
            self.context: zmq.Context[zmq.Socket[bytes]] = self._stack.enter_context(zmq.Context())
            self._link = self._stack.enter_context(Link(self.context, self.connection, self.rank, self.incarnation))
            self._link.ends_with_server = True
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

    def attend(self, socket: zmq.Socket[bytes] | None, work: Callable[[], bool]) -> None:
        """Call `work` while waiting, which says whether it did something; `socket` wakes a sleeping worker up."""
        self._attendants.append((socket, work))

    def dismiss(self) -> None:
        """Attend to nothing else any more."""
        self._attendants.clear()
        self.on_sleep = None

    def on(self, kind: Kind, handler: Callable[[Message], None]) -> None:
        """Call `handler` for such messages of the coordinator that are here, then whenever this worker listens."""
        self._handlers[kind] = handler
        here = [message for message in self._inbox if message.kind is kind]
        self._inbox = [message for message in self._inbox if message.kind is not kind]
        for message in here:
            handler(message)

    def hello(self, facts: Mapping[str, Any]) -> Mapping[str, int]:
        """Join the job; gives the sizes of what there is to fetch."""
        place = {"host": sockets.gethostname(), "mark": self.mark, "pulse": self._pulse.name}
        self._say(Kind.HELLO, body={**facts, **place})
        sizes: Mapping[str, int] = self._wait(Kind.WELCOME).body["sizes"]
        self._pulse.start()
        return sizes

    def fetch(self, name: str, start: int, stop: int) -> bytearray:
        """Bytes `start` to `stop` of something that the coordinator has."""
        fetched = bytearray(stop - start)
        missing = deque(range(0, len(fetched), CHUNK_BYTES))
        asked: set[int] = set()

        def ask(place: int) -> None:
            self._link.send(Kind.FETCH, offset=start + place, body={"name": name})

        def ask_again() -> None:
            for place in asked:
                ask(place)

        while missing or asked:
            while missing and len(asked) < _WINDOW:
                asked.add(missing[0])
                ask(missing.popleft())
            message = self._wait(Kind.BLOB, again=ask_again)
            place = message.offset - start
            if place not in asked:
                continue
            asked.remove(place)
            piece = bytes(message.payload) if message.payload is not None else b""
            length = min(len(piece), len(fetched) - place)
            fetched[place : place + length] = piece[:length]
        return fetched

    def ready(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Say that the rows are read and the model is built; the answer comes when training starts."""
        self._say(Kind.READY, body=facts)
        start = self._wait(Kind.START).body
        decided = start.get("decided")
        if decided is not None:
            self.control = Control(int(decided["lap"]), decided["learning_rate"], bool(decided["last"]))
        return start

    def report(
        self, leg: Leg, round_: int, rows: int, metrics: Sequence[npt.NDArray[np.float64]], *, so_far: bool
    ) -> None:
        """Tell the driver how far this rank is, and the metrics' state: of a whole part of the lap, or `so_far`."""
        shapes, buffer = pack_arrays(metrics)
        place = {"round": round_, "epoch": leg.epoch, "lap": leg.index}
        body = {"rows": rows, **place, "shapes": shapes, "so_far": so_far, "tally": self.tally.to_json()}
        self._say(Kind.REPORT, leg.number, body=body, payload=buffer)

    def report_losses(self, first_step: int, losses: npt.NDArray[np.float64]) -> None:
        """Tell the driver the losses of consecutive steps and their rows, a row of `losses` for each step."""
        for start, stop in chunks(len(losses), losses[:1].nbytes):
            self._say(Kind.LOSSES, first_step + start, payload=np.array(losses[start:stop], np.float64))

    def end_lap(
        self,
        leg: Leg,
        rows: int,
        metrics: Sequence[npt.NDArray[np.float64]],
        validation: Sequence[npt.NDArray[np.float64]],
        facts: Mapping[str, Any],
    ) -> None:
        """Tell the driver that a lap is done: the rest of its metrics, those of the validation rows, and `facts`."""
        shapes, buffer = pack_arrays([*metrics, *validation])
        body = {
            **facts,
            "rows": rows,
            "epoch": leg.epoch,
            "lap": leg.index,
            "step": leg.step + leg.stop - leg.first,
            "ends_epoch": leg.ends_epoch,
            "final": leg.final,
            "shapes": shapes,
            "split": len(metrics),
            "tally": self.tally.to_json(),
        }
        self._say(Kind.LAP, leg.number, body=body, payload=buffer)

    def wait_for_go(self, lap: int) -> Control:
        """What the driver decided after that lap."""
        return self.wait_until(lambda: self.control if self.control and self.control.lap >= lap else None, "GO")

    def poll_control(self) -> Control | None:
        """The driver's latest decision, without waiting for one."""
        self._listen()
        return self.control

    def send_parameters(self, vector: Vector, start: int = 0, body: Mapping[str, Any] | None = None) -> None:
        """Send the driver parameters, which lie at `start` in the whole vector; they are copied."""
        for first, last in chunks(vector.size, vector.itemsize):
            done = {**(body or {}), "complete": last == vector.size}
            self._say(Kind.PARAMETERS, 0, start + first, done, np.array(vector[first:last]))

    def send_state(self, round_: int, arrays: Sequence[npt.NDArray[Any]], target: int | None = None) -> None:
        """Leave weights and optimizer state, as they are before a round, with the driver: this rank's or another's."""
        self._send_arrays(round_, arrays, {"for": self.rank if target is None else target})

    def send_last_state(self, round_: int, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Give the driver the optimizer state that training led to."""
        self._send_arrays(round_, arrays, {"for": self.rank, "last": True})

    def save(self, round_: int, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Give the driver weights and optimizer state, as they are before a round, to write down."""
        self._send_arrays(round_, arrays, {"for": self.rank, "save": True})

    def save_slice(self, round_: int, kept: Kept) -> None:
        """Give the driver what a slice is before a round, to write down."""
        self._send_arrays(round_, kept.arrays, {"for": self.rank, "save": True, "slice": kept.to_json()})

    def miss(self, round_: int) -> None:
        """Tell the driver that the round before which to save was over when it was announced."""
        self._say(Kind.MISSED, round_)

    def _send_arrays(self, round_: int, arrays: Sequence[npt.NDArray[Any]], facts: Mapping[str, Any]) -> None:
        described, buffer = pack_typed(arrays)
        body = {**facts, "size": buffer.size, "arrays": described}
        for start, stop in chunks(buffer.size, 1):
            last = {**body, "complete": stop == buffer.size}
            self._say(Kind.STATE, round_, start, last, buffer[start:stop])

    def ask_for_state(self, round_: int, *, from_others: bool) -> tuple[int, list[npt.NDArray[Any]]] | None:
        """What this rank left with the driver, or another holds now: the round it is from, and the arrays."""
        self._say(Kind.ASK, round_, body={"from_others": from_others})
        held = self._wait(Kind.HELD)
        if not held.body["size"]:
            return None
        return held.round, unpack_typed(held.body["arrays"], self.fetch("state", 0, int(held.body["size"])))

    def tell_norm(self, round_: int, value: float) -> None:
        """Tell the other slices this one's part of a round's squared norm."""
        self._say(Kind.NORM, round_, body={"value": value})

    def done(self, *, wait: bool) -> None:
        """Say that this rank has trained to the end, and with `wait` wait until all have and the result is home."""
        self._say(Kind.DONE)
        if wait:
            self.wait_until(lambda: self.released or None, "RELEASE")

    def failed(self, body: Mapping[str, Any]) -> None:
        """Tell the driver why this worker ends, and wait until it knows; raises where it cannot be told."""
        self._say(Kind.FAILED, body=body)
        with contextlib.suppress(Stopped):
            self._wait(Kind.STOP)

    def diverged(self, round_: int, body: Mapping[str, Any]) -> NoReturn:
        """Tell the driver what is not finite, and attend to everything until it ends the job: raises `Stopped`."""
        self._say(Kind.DIVERGED, round_, body=body)
        self.wait_until(lambda: None, "the end of the training")
        raise AssertionError

    def bye(self, body: Mapping[str, Any] | None = None) -> None:
        """Leave the job in good order: once the driver knows, or cannot be told."""
        self.dismiss()
        self._say(Kind.BYE, body=body)
        deadline = self._clock() + _LEAVE_SECONDS
        with contextlib.suppress(Stopped):
            self.wait_until(lambda: self._post.confirmed or self._clock() > deadline or None, "the driver's good-bye")

    def wait_until(
        self, condition: Callable[[], Found | None], what: str, again: Callable[[], None] | None = None
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

    def _say(
        self,
        kind: Kind,
        round_: int = 0,
        offset: int = 0,
        body: Mapping[str, Any] | None = None,
        payload: npt.NDArray[Any] | None = None,
    ) -> None:
        """Send the coordinator a letter; a payload is never written to again."""
        letter = Message(kind, self.rank, self.incarnation, round_, offset, body or {}, payload)
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
        got, sent = standing_of(self._standing)
        self._standing = None
        self._post.confirm(got, self._clock())
        missed = sent > self._post.got
        if missed or self._post.got > self._told:
            self._told = self._post.got
            self._link.send(Kind.GOT, body={"got": self._post.got, "again": missed})

    def _wait(self, kind: Kind, again: Callable[[], None] | None = None) -> Message:
        def taken() -> Message | None:
            for index, message in enumerate(self._inbox):
                if message.kind is kind:
                    return self._inbox.pop(index)
            return None

        return self.wait_until(taken, kind.name, again)

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
            if message.kind is Kind.ALIVE:
                self._standing = message.body
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
        if message.kind is Kind.STOP:
            reason = str(message.body.get("reason", ""))
            if reason != SUPERSEDED:
                raise Stopped(reason)
            if Kind.STOP in self._handlers:
                self._handlers[Kind.STOP](message)
            raise Superseded(reason)
        if message.kind is Kind.GO:
            body = message.body
            self.control = Control(message.round, body["learning_rate"], bool(body["last"]))
        elif message.kind is Kind.RELEASE:
            self.released = True
        elif message.kind in self._handlers:
            self._handlers[message.kind](message)
        else:
            self._inbox.append(message)
