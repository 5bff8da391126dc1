"""The parameter server's logic: messages in, actions out, no I/O, no clock, no threads. Runs on the driver.

A worker says HELLO, reads its rows, says READY, and gets START; then it contributes to round after round. Under a
synchronous plan a round closes when every member has sent its contribution or passed, and everyone gets the same
RESULT. Under an asynchronous plan each contribution is applied when it is complete, and its sender alone gets the
new parameters. A contribution carries (rank, incarnation, round): what was applied already is answered again and
not applied again, an older incarnation is told to stop, and what does not fit is counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keraunos.batch import BatchSpec
from keraunos.exchange import rules
from keraunos.exchange.wire import SUPERSEDED, Kind, Message, WireError, unpack_arrays
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout, Vector


@dataclass(frozen=True)
class Send:
    """Send a message to a member; a RESULT goes with the vector `result` names."""

    rank: int
    message: Message
    result: Vector | None = None


@dataclass(frozen=True)
class Event:
    """Something the driver wants to know: the worker's message that says it, checked."""

    kind: Kind
    rank: int
    body: dict[str, Any]
    arrays: list[Any] = field(default_factory=list)
    round: int = 0


@dataclass(frozen=True)
class Offer:
    """Before START: make buffers for a member of this contribution length."""

    rank: int
    length: int


Action = Send | Event | Offer
BufferOf = Callable[[int], Vector]


@dataclass
class Member:
    """One rank as the server sees it."""

    incarnation: int
    host: str
    mark: str | None = None
    ready: bool = False
    gone: bool = False
    parts: int = 1
    round: int = 0
    received: set[int] = field(default_factory=set)
    elements: int = 0
    sent: rules.Sent | None = None
    passed: bool = False

    def clear_round(self) -> None:
        """Be open for the next contribution."""
        self.round += 1
        self.received = set()
        self.elements = 0
        self.sent = None
        self.passed = False


class ServerState:
    """All that a server knows.

    `buffer_of(rank)` is the vector that holds that rank's contribution; `result` is what a RESULT carries: a vector
    for the reduced gradient where the rule runs on the workers, else the parameters themselves.
    """

    def __init__(
        self, plan: ExchangePlan, workers: int, layout: Layout, parameters: Vector, result: Vector, buffer_of: BufferOf
    ) -> None:
        self.plan = plan
        self.workers = workers
        self.layout = layout
        self.parameters = parameters
        self.result = result
        self.uploaded = layout.empty()
        self.start_facts: dict[str, Any] = {}
        self.members: dict[int, Member] = {}
        self.started = False
        self.stopped: str | None = None
        self.dropped = 0
        self.rounds = 0
        self._buffer_of = buffer_of
        self._rows: dict[int, dict[str, Any]] = {}

    def receive(self, message: Message) -> list[Action]:
        """What follows from a message; nothing that arrives can raise."""
        handlers = {
            Kind.HELLO: self._hello,
            Kind.READY: self._ready,
            Kind.PUSH: self._push,
            Kind.PASS: self._pass,
        }
        try:
            if message.kind is Kind.HELLO:
                return self._hello(message)
            member = self._member(message)
            if member is None:
                return self._refuse(message)
            if message.kind in handlers:
                return handlers[message.kind](message)
            return self._report(member, message)
        except (WireError, KeyError, TypeError, ValueError):
            return self._drop()

    def start_body(self) -> dict[str, Any]:
        """What a worker is told when training starts: every rank's rows, from which it derives the rounds."""
        return {**self.start_facts, "rows": {str(rank): facts["rows"] for rank, facts in self._rows.items()}}

    def stop(self, reason: str) -> list[Action]:
        """End the exchange for everyone."""
        self.stopped = reason
        message = Message(Kind.STOP, body={"reason": reason})
        return [Send(rank, message) for rank, member in self.members.items() if not member.gone]

    def go(self, epoch: int, learning_rate: float | None, last: bool) -> list[Action]:
        """Tell every worker what the driver decided after an epoch."""
        message = Message(Kind.GO, round=epoch, body={"learning_rate": learning_rate, "last": last})
        return [Send(rank, message) for rank, member in self.members.items() if not member.gone]

    def alive(self) -> list[Action]:
        """A sign of life for everyone."""
        return [Send(rank, Message(Kind.ALIVE)) for rank, member in self.members.items() if not member.gone]

    def _member(self, message: Message) -> Member | None:
        member = self.members.get(message.rank)
        return member if member is not None and member.incarnation == message.incarnation else None

    def _refuse(self, message: Message) -> list[Action]:
        known = self.members.get(message.rank)
        self.dropped += 1
        if known is not None and message.incarnation < known.incarnation:
            return [
                Send(message.rank, Message(Kind.STOP, message.rank, message.incarnation, body={"reason": SUPERSEDED}))
            ]
        return []

    def _drop(self) -> list[Action]:
        self.dropped += 1
        return []

    def _hello(self, message: Message) -> list[Action]:
        if not 0 <= message.rank < self.workers:
            return self._drop()
        known = self.members.get(message.rank)
        if known is not None and message.incarnation < known.incarnation:
            return self._refuse(message)
        again = known is not None and message.incarnation > known.incarnation
        host = str(message.body["host"])
        if known is None or again:
            self.members[message.rank] = Member(message.incarnation, host, message.body.get("mark"))
        if self.stopped is not None:
            return [Send(message.rank, Message(Kind.STOP, body={"reason": self.stopped}))]
        event = Event(Kind.HELLO, message.rank, {**message.body, "again": again})
        return [event, Send(message.rank, Message(Kind.WELCOME, message.rank, message.incarnation))]

    def _ready(self, message: Message) -> list[Action]:
        member = self.members[message.rank]
        if member.ready:
            return [Send(message.rank, Message(Kind.START, body=self.start_body()))] if self.started else []
        facts = {
            "rows": int(message.body["rows"]),
            "validation_rows": int(message.body["validation_rows"]),
            "spec": message.body["spec"],
            "digest": str(message.body["digest"]),
        }
        if facts["spec"] is not None:
            BatchSpec.from_json(facts["spec"])
        member.parts = int(message.body["parts"])
        if not 1 <= member.parts <= 64 or facts["rows"] < 0:
            return self._drop()
        member.ready = True
        self._rows[message.rank] = facts
        actions: list[Action] = [Event(Kind.READY, message.rank, facts)]
        length = rules.contribution_length(self.plan.send, self.layout, member.parts)
        actions.append(Offer(message.rank, length))
        if not self.plan.synchronous:
            start = Message(Kind.START, body=self.start_body())
            first = Message(Kind.RESULT, message.rank, message.incarnation, body={"first": True})
            return [*actions, Send(message.rank, start), Send(message.rank, first, self.parameters)]
        return actions

    def start(self) -> list[Action]:
        """Begin the rounds of a synchronous plan: every member is ready and the driver has agreed."""
        self.started = True
        return [
            Send(rank, Message(Kind.START, body=self.start_body()))
            for rank, member in sorted(self.members.items())
            if not member.gone
        ]

    def _push(self, message: Message) -> list[Action]:
        member = self.members[message.rank]
        if message.round < member.round:
            return self._answer_again(message.rank, member) if message.round == member.round - 1 else self._drop()
        if message.round > member.round or not member.ready or message.offset in member.received or member.passed:
            return self._drop()
        buffer = self._buffer_of(message.rank)
        sent = member.sent
        if "rows" in message.body:
            denominators = tuple(None if each is None else float(each) for each in message.body["denominators"])
            if len(denominators) != member.parts:
                return self._drop()
            sent = rules.Sent(buffer, denominators, int(message.body["rows"]))
        member.elements += _place(message, buffer)
        member.received.add(message.offset)
        member.sent = sent
        if member.sent is None or member.elements < buffer.size:
            return []
        return self._close_if_complete() if self.plan.synchronous else self._apply(message.rank, member)

    def _pass(self, message: Message) -> list[Action]:
        member = self.members[message.rank]
        if message.round < member.round:
            return self._answer_again(message.rank, member) if message.round == member.round - 1 else self._drop()
        if message.round > member.round or member.elements or not member.ready or not self.plan.synchronous:
            return self._drop()
        member.passed = True
        return self._close_if_complete()

    def _answer_again(self, rank: int, member: Member) -> list[Action]:
        return [Send(rank, Message(Kind.RESULT, rank, member.incarnation, member.round - 1), self.result)]

    def _close_if_complete(self) -> list[Action]:
        members = [(rank, member) for rank, member in sorted(self.members.items()) if not member.gone]
        complete = all(m.passed or (m.sent is not None and m.elements >= m.sent.values.size) for _, m in members)
        if not self.started or not complete:
            return []
        sent = [member.sent for _, member in members if member.sent is not None]
        if sent and self.plan.send == "gradients":
            rules.mean_gradient(sent, self.layout, self.result)
        elif sent:
            rules.mean_update(sent, self.parameters)
        self.rounds += 1
        for _, member in members:
            member.clear_round()
        return [
            Send(rank, Message(Kind.RESULT, rank, member.incarnation, member.round - 1), self.result)
            for rank, member in members
        ]

    def _apply(self, rank: int, member: Member) -> list[Action]:
        scale = 1.0 / self.workers if self.plan.scale is None else self.plan.scale
        if member.sent is not None:
            rules.add_update(member.sent, scale, self.parameters)
        self.rounds += 1
        member.clear_round()
        return self._answer_again(rank, member)

    def _upload(self, message: Message) -> None:
        if message.payload is None:
            np.copyto(self.uploaded, self._buffer_of(message.rank)[: self.layout.size])
        else:
            _place(message, self.uploaded)

    def _report(self, member: Member, message: Message) -> list[Action]:
        body = dict(message.body)
        arrays: list[Any] = []
        if message.kind is Kind.PARAMETERS:
            self._upload(message)
            if not body.get("complete"):
                return []
        elif "shapes" in body:
            arrays = unpack_arrays(body.pop("shapes"), message.payload)
        elif message.kind in (Kind.FAILED, Kind.BYE):
            member.gone = True
        elif message.kind not in (Kind.REPORT, Kind.EPOCH):
            return self._drop()
        actions: list[Action] = [Event(message.kind, message.rank, body, arrays, message.round)]
        if message.kind is Kind.FAILED:
            # The worker may end in peace: its error is with the driver.
            actions.append(Send(message.rank, Message(Kind.STOP, body={"reason": "your failure is known"})))
        if message.kind is Kind.BYE and self.plan.synchronous:
            actions += self._close_if_complete() if any(not m.gone for m in self.members.values()) else []
        return actions


def _place(message: Message, buffer: Vector) -> int:
    """Put a chunk where it belongs and say how many elements it brought; a chunk without payload is there already."""
    if message.payload is None:
        return buffer.size if message.offset == 0 else 0
    values = np.frombuffer(message.payload, dtype=buffer.dtype)
    if message.offset + values.size > buffer.size:
        raise WireError("a chunk reaches past the end of the vector")
    np.copyto(buffer[message.offset : message.offset + values.size], values)
    return values.size
