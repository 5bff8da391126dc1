"""The server of a slice with one hostile worker: the others get a result for every round, whatever it says.

The sockets are left out. Where the hostile worker contributed nothing, the parameters are, bit by bit, those of a fit
without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from fuzz.choices import Choices
from fuzz.endpoints import NotingEndpoint
from fuzz.json_values import INTEGERS, Values
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.endpoint import Endpoint
from keraunos.exchange.rules.mean import Mean
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.rules.sums import squared_norm
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import host_mark
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.wire import MAX_COUNTER, Kind, Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "s"), ((6,), (2,)), trainable=1)
PART = Slice(LAYOUT, 0, LAYOUT.size)
WORKERS = 3
ROUNDS = 3
_NORM = ExchangePlan("updates", 1, "synchronous", "mean")
PLANS: tuple[ExchangePlan, ...] = (
    ExchangePlan.named("allreduce"),
    ExchangePlan.named("averaging"),
    ExchangePlan.named("downpour"),
    ExchangePlan.named("hogwild"),
    ExchangePlan.named("bounded"),
    ExchangePlan.named("elastic"),
    ExchangePlan("weights", 1, "synchronous", "mean"),
    ExchangePlan("updates", 1, "synchronous", "sum"),
    ExchangePlan("weights", 1, "asynchronous", "moving_average(4)"),
    ExchangePlan("updates", 1, "bounded(0)", "delayed_nesterov", scale="staleness"),
    ExchangePlan("updates", 1, "synchronous", "mean", compression="int8"),
    ExchangePlan("updates", 1, "asynchronous", "add", compression="bfloat16"),
    ExchangePlan("weights", 1, "bounded(1)", "elastic(0.1)"),
    _NORM,
)
_WORDS = ("parts", "mark", "wants_parameters", "rows", "denominators", "squared_norm", "shared", host_mark() or "m")
_JOIN = {"parts": 1, "mark": None, "wants_parameters": True}
_PUSH = {"rows": 4, "denominators": [4.0], "squared_norm": 2.0}
_BODIES: tuple[tuple[Kind, dict[str, Any]], ...] = (
    (Kind.JOIN, _JOIN),
    (Kind.PUSH, _PUSH),
    (Kind.PUSH, {}),
    (Kind.PASS, {}),
    (Kind.AGAIN, {}),
    (Kind.LEAVE, {}),
    (Kind.JOIN, {**_JOIN, "parts": 2}),
    (Kind.JOIN, {**_JOIN, "mark": host_mark()}),
    (Kind.PUSH, {**_PUSH, "shared": True}),
    (Kind.PUSH, {**_PUSH, "denominators": [4.0, None]}),
)


class Clipped(Mean):
    """A rule that asks for the norm over all slices and does nothing with it."""

    needs_norm = True

    def squared_norm(self, sent: Sequence[Sent]) -> float:
        """That of what was sent first."""
        return squared_norm(sent[0].values)


def one(data: bytes) -> None:
    """One fit: hostile and honest words, in an order that the bytes choose."""
    choices = Choices(data)
    plan = choices.pick(PLANS)
    with np.errstate(all="ignore"), Fit(choices, plan, choices.below(WORKERS)) as fit:
        for _ in range(40):
            if not choices.left:
                break
            fit.go_on()
        fit.end()


def seeds() -> Iterator[bytes]:
    """Each plan, with each kind of message as it should be."""
    for plan in range(len(PLANS)):
        yield bytes([plan])
        for number in range(len(_BODIES)):
            word = _word(0, payload=1) + _word(number, payload=1)
            yield bytes([plan, 0]) + word + bytes([4, 0, 4, 1, 4, 0, 4, 1]) + _word(number, payload=0) + _word(5)
            yield bytes([plan, 1, 4, 0, 4, 1]) + word + word + bytes([4, 0, 4, 1, 7])


def _word(number: int, payload: int = 0) -> bytes:
    """The choices that make the hostile worker say something as it is in `_BODIES`."""
    is_join = _BODIES[number][0] is Kind.JOIN
    return bytes([0, number, 0, 0, *([0] if is_join else []), 0, payload, 0, 0])


@dataclass
class Worker:
    """An honest worker, who joins, contributes to one round after the other and waits for each result."""

    rank: int
    round: int = -1
    waits: bool = False
    joined: bool = False

    def next(self, codec: Any, dtype: str) -> Message | None:
        """What it says now; nothing while it waits."""
        if self.round < 0 and not self.joined:
            # Said again until it is answered, as a worker does.
            self.waits = True
            return Message(Kind.JOIN, self.rank, 1, body=_JOIN)
        if self.waits or self.round >= ROUNDS:
            return None
        self.waits = True
        values = np.random.default_rng((self.rank, self.round)).normal(size=LAYOUT.size).astype(dtype)
        encoded = codec.encode(values, codec.buffer(values.size, values.itemsize))
        rows = 2 + self.rank
        body = {"rows": rows, "denominators": [float(rows)], "squared_norm": 1.0}
        payload = memoryview(np.ascontiguousarray(encoded)).cast("B")
        return Message(Kind.PUSH, self.rank, 1, self.round, body=body, payload=payload)

    def hear(self, messages: list[Message]) -> None:
        """Take what the server says."""
        for message in messages:
            assert message.kind is not Kind.REFUSED, "an honest worker was refused"
            self.joined |= message.kind is Kind.JOINED
            if message.kind is Kind.RESULT and self.waits:
                first = bool(message.body.get("first"))
                assert first or message.round <= self.round
                if (first and self.round < 0) or (not first and message.round == self.round):
                    self.round += 1
                    self.waits = False


class Fit:
    """A server, its honest workers and a hostile one."""

    def __init__(self, choices: Choices, plan: ExchangePlan, hostile: int) -> None:
        self._choices = choices
        self._plan = plan
        self._hostile = hostile
        self._codec = codec_named(plan.compression or "plain")
        self._endpoint = NotingEndpoint()
        self._norms: list[tuple[int, float]] = []
        self._server = self._made(self._endpoint, range(WORKERS), lambda *told: self._norms.append(told))
        self._workers = [Worker(rank) for rank in range(WORKERS) if rank != hostile]
        self._said: list[Message] = []
        self._incarnation = 1
        self._excluded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def go_on(self) -> None:
        """The next thing that happens."""
        what = self._choices.below(8)
        if what < 4:
            self._hostile_word()
        elif what < 7:
            self._honest_word(self._choices.pick(self._workers))
        else:
            self._answer_norms()
        self._check()

    def end(self) -> None:
        """The driver goes on without the hostile worker; the others get to the end of their rounds."""
        server = self._server
        self._excluded = True
        server._act(server.state.exclude(self._hostile))
        for _ in range(3 * (ROUNDS + 2)):
            for worker in self._workers:
                self._honest_word(worker)
            self._answer_norms()
            self._check()
        for worker in self._workers:
            worker.hear(self._endpoint.taken(b"w%d" % worker.rank))
            assert worker.round == ROUNDS, "an honest worker waits for ever"
        pushes = sum(message.kind is Kind.PUSH for message in self._said)
        if server.state.applied == pushes:
            np.testing.assert_array_equal(server.state.parameters, self._undisturbed())

    def _made(self, endpoint: NotingEndpoint, ranks: Any, tell_norm: Any) -> SliceServer:
        start = np.linspace(-1, 1, LAYOUT.size).astype(LAYOUT.dtype)
        asks = self._plan is _NORM
        return SliceServer(
            self._plan,
            PART,
            WORKERS,
            None if self._plan.applies_on_workers else start,
            cast("Endpoint", endpoint),
            ranks=ranks,
            alone=not asks,
            rule=Clipped(self._plan, PART, WORKERS) if asks else None,
            tell_norm=tell_norm,
        )

    def _undisturbed(self) -> Any:
        """The parameters after the same honest words, in the same order, without the hostile worker."""
        ranks = [worker.rank for worker in self._workers]
        norms: list[tuple[int, float]] = []
        server = self._made(NotingEndpoint(), ranks, lambda *told: norms.append(told))
        try:
            for message in self._said:
                server._take(b"w%d" % message.rank, message)
                while norms:
                    server._act(server.state.total_norm(*norms.pop()))
            return server.state.parameters.copy()
        finally:
            server.close()

    def _honest_word(self, worker: Worker) -> None:
        client = b"w%d" % worker.rank
        worker.hear(self._endpoint.taken(client))
        message = worker.next(self._codec, LAYOUT.dtype)
        if message is not None:
            self._said.append(message)
            self._server._take(client, message)
            worker.hear(self._endpoint.taken(client))

    def _answer_norms(self) -> None:
        while self._norms:
            self._server._act(self._server.state.total_norm(*self._norms.pop()))

    def _hostile_word(self) -> None:
        choices = self._choices
        kind, told = choices.pick(_BODIES)
        body: Any = told
        if choices.below(2):
            body = Values(choices, _WORDS).edited(json.loads(json.dumps(told)), 3)
        if not isinstance(body, dict):
            body = {"x": body}
        if choices.below(16) == 15:
            kind = choices.pick(list(Kind))
        if kind is Kind.JOIN and choices.below(2):
            self._incarnation += 1
        member = self._server.state.members.get(self._hostile)
        own = 0 if member is None else member.round
        round_ = choices.pick((own, own, own, max(0, own - 1), own + 1, MAX_COUNTER))
        size = self._codec.encoded_size(LAYOUT.size, 4)
        way = choices.below(5)
        payload = (None, bytes(size), b"", bytes(2 * size))[way] if way < 4 else choices.take(size).ljust(size, b"\1")
        offset = choices.pick((0, 0, 0, *(each for each in INTEGERS if 0 <= each <= MAX_COUNTER)))
        view = None if payload is None else memoryview(payload)
        incarnation = self._incarnation - (choices.below(16) == 15)
        message = Message(kind, self._hostile, incarnation, round_, offset, body, view)
        self._server._take(b"w%d" % self._hostile, message)
        self._endpoint.taken(b"w%d" % self._hostile)

    def _check(self) -> None:
        """What holds at any moment: nobody is there who should not be, and nothing grows by what is said."""
        server, state = self._server, self._server.state
        for held in (state.members, server._buffers, server._uploads, server._clients, state.contributed):
            assert set(held) <= set(range(WORKERS))
        for rank, member in state.members.items():
            assert len(member.received) <= 1, "more chunks than a contribution has"
            assert member.elements <= PART.contribution_size(member.parts)
            assert rank == self._hostile or member.incarnation == 1
        assert all(0 <= count < 1 << 72 for count in state.contributed.values())
