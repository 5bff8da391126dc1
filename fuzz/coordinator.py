"""The coordinator with one hostile member: whatever that says over its own connection, the others train to the end.

The sockets are left out; messages go through the same checks of connection, incarnation and number as from a socket.
The hostile member knows the secrets and has its rank. It may say anything, and be left out by the driver in the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
import zmq

from fuzz.choices import Choices
from fuzz.endpoints import NotingEndpoint
from fuzz.json_values import INTEGERS, Values
from keraunos.exchange.coordinator import Coordinator
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.endpoint import Endpoint
from keraunos.exchange.message_parts import SlicePlace
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import MAX_COUNTER, Kind, Message, pack_arrays, pack_typed
from keraunos.job.placement import FIRST_SERVER, placement_of
from keraunos.parameters import Layout

LAYOUT = Layout(("w", "s"), ((10,), (2,)), trainable=1)
WORKERS = 3
LAPS = 2
_JOB = b"the job"
_TALLY = Tally().to_json()
_SPEC = {"inputs": [[4], "float32"], "targets": None, "weighted": False}
_PLACE = {"address": "tcp://127.0.0.1:5000", "credentials": {"secret": "s", "server_secret": ""}}
_READY = {"rows": 10, "validation_rows": 0, "spec": _SPEC, "digest": "d", "parts": 1, "slice": _PLACE}
_STATE = {"for": 1, "size": 8, "arrays": [["float32", [2]]], "complete": True}
_LAP = {
    "rows": 1, "shapes": [[1], [1]], "split": 1, "tally": _TALLY, "epoch": 0, "lap": 0, "step": 1, "ends_epoch": False,
    "final": False, "skipped": 0, "trained": True,
}  # fmt: skip
_WORDS = (
    "host", "mark", "pulse", "name", "job", "state", "slice", "rows", "validation_rows", "spec", "digest", "parts",
    "tally", "shapes", "for", "size", "arrays", "complete", "save", "last", "from_others", "value", "got", "sent",
    "again", "stacks", "epoch", "step", "what", "address", "credentials", "float32", "O", "({", "ffff", "zz",
)  # fmt: skip
# What a well-behaved member would say, from which the hostile one makes its own.
_BODIES: tuple[tuple[Kind, dict[str, Any]], ...] = (
    (Kind.HELLO, {"host": "h", "mark": "m", "pulse": "ff00", "versions": {}}),
    (Kind.FETCH, {"name": "job"}),
    (Kind.READY, _READY),
    (Kind.REPORT, {"rows": 1, "round": 0, "shapes": [[2]], "so_far": False, "tally": _TALLY, "epoch": 0, "lap": 0}),
    (Kind.LAP, _LAP),
    (Kind.PARAMETERS, {"complete": True}),
    (Kind.STATE, _STATE),
    (Kind.STATE, {**_STATE, "for": 2, "save": True, "slice": {"rounds": [], "contributed": [], "applied": 0}}),
    (Kind.NORM, {"value": 1.5}),
    (Kind.FAILED, {"error": "x"}),
    (Kind.DONE, {}),
    (Kind.BYE, {}),
    (Kind.ASK, {"from_others": True}),
    (Kind.LOSSES, {}),
    (Kind.PULSE, _TALLY),
    (Kind.STACKS, {**_TALLY, "stacks": ["a", "b"]}),
    (Kind.GOT, {"got": 1, "sent": 2, "again": True}),
    (Kind.MISSED, {}),
    (Kind.DIVERGED, {"epoch": 0, "step": 1, "what": "loss"}),
)
_PAYLOADS = (None, b"12345678", b"1234567812345678", np.arange(12, dtype=np.float32).tobytes())
_HUGE = "x" * ((1 << 20) - 2000)


def one(data: bytes) -> None:
    """One fit: hostile and honest words and the driver's, in an order that the bytes choose."""
    choices = Choices(data)
    fit = Fit(choices)
    for _ in range(40):
        if not choices.left:
            break
        fit.go_on()
    fit.end()


def seeds() -> Iterator[bytes]:
    """Each kind of job, with each kind of message as it should be."""
    for job in range(4):
        yield bytes([job])
        begun = bytes([job, *([0] if job == 2 else []), 2, 0, 0, 0, 1, 0, 0])
        for number, (kind, _) in enumerate(_BODIES):
            for payload in range(len(_PAYLOADS)):
                hello = [0] if kind is Kind.HELLO else []
                word = bytes([0, number, 0, 0, 1, 0, payload, *hello, 0, 0])
                yield begun + word + bytes([4, 0] * 4 + [4, 1] * 4 + [7, 5]) + word


class Member:
    """An honest member, who does one thing after the other and waits for answers."""

    def __init__(self, rank: int, *, hosts: bool) -> None:
        self.rank = rank
        self.client = b"c%d" % rank
        self.hosts = hosts
        self.number = 0
        self.heard: list[Message] = []
        self.got = 0
        self.words = self._words()
        self.ended = False

    def say(self, kind: Kind, round_: int = 0, body: Any = None, payload: Any = None) -> tuple[Kind, Message]:
        """A letter."""
        self.number += 1
        return kind, Message(kind, self.rank, 1, round_, 0, body or {}, payload, self.number)

    def hear(self, messages: list[Message]) -> None:
        """Take what the coordinator says; letters come once each and in order."""
        for message in messages:
            if message.number:
                assert message.number == self.got + 1, "a letter was lost or said twice"
                self.got = message.number
            assert message.kind is not Kind.STOP, f"an honest member was stopped: {message.body}"
            self.heard.append(message)

    def has(self, kind: Kind) -> Message | None:
        """What was heard of that kind."""
        return next((message for message in self.heard if message.kind is kind), None)

    def _words(self) -> Iterator[tuple[Kind, Message] | None]:
        """What it says, in order; `None` while it waits."""
        yield self.say(Kind.HELLO, body={"host": "h", "mark": "m", "pulse": self.client.hex() + "ff", "versions": {}})
        while not self.has(Kind.WELCOME):
            yield None
        yield Kind.FETCH, Message(Kind.FETCH, self.rank, 1, body={"name": "job"})
        blob = self.has(Kind.BLOB)
        assert blob is not None
        assert bytes(cast("Any", blob.payload)) == _JOB
        yield self.say(Kind.READY, body=_READY if self.hosts else {**_READY, "slice": None})
        while not self.has(Kind.START):
            yield None
        self._check_start()
        if self.rank < FIRST_SERVER:
            yield from self._trains()
        yield self.say(Kind.DONE)
        while not self.has(Kind.RELEASE):
            yield None
        yield self.say(Kind.BYE)
        self.ended = True

    def _trains(self) -> Iterator[tuple[Kind, Message] | None]:
        for lap in range(LAPS):
            shapes, buffer = pack_arrays([np.ones(2), np.ones(1)])
            body = {**_LAP, "rows": 5, "shapes": shapes}
            yield self.say(Kind.LAP, lap, body, memoryview(buffer).cast("B"))
            arrays, state = pack_typed([np.full(2, lap, np.float32)])
            state_body = {"for": self.rank, "size": state.size, "arrays": arrays, "complete": True}
            yield self.say(Kind.STATE, lap, state_body, memoryview(state).cast("B"))
            while not any(each.kind is Kind.GO and each.round == lap for each in self.heard):
                yield None

    def _check_start(self) -> None:
        start = self.has(Kind.START)
        assert start is not None
        slices = start.body["slices"]
        assert [slices[0]["start"], slices[-1]["stop"]] == [0, LAYOUT.size]
        assert all(before["stop"] == after["start"] for before, after in pairwise(slices))
        if self.rank < FIRST_SERVER:
            assert start.body["rows"][str(self.rank)] == _READY["rows"]


class Fit:
    """A coordinator, its honest members, a hostile one, and what the driver does."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        job = choices.below(4)
        hosted, servers, needs_all = job == 1, int(job == 2), job != 3
        self.hostile = FIRST_SERVER if servers and choices.below(4) == 3 else choices.below(WORKERS)
        self.state = CoordinatorState(
            LAYOUT,
            WORKERS,
            placement=placement_of("workers" if hosted else servers or "driver"),
            needs_all=needs_all,
            blobs={"job": lambda: memoryview(_JOB)},
        )
        if not hosted and not servers:
            self.state.slices = [SlicePlace(_PLACE["address"], {"secret": "s"}, 0, LAYOUT.size)]
        self.endpoint = NotingEndpoint()
        context: zmq.Context[Any] = cast("Any", None)
        self.coordinator = Coordinator(self.state, context, cast("Endpoint", self.endpoint), clock=lambda: 0.0)
        ranks = [*range(WORKERS), *range(FIRST_SERVER, FIRST_SERVER + servers)]
        self.honest = [Member(rank, hosts=hosted or rank >= FIRST_SERVER) for rank in ranks if rank != self.hostile]
        self._laps = 0
        self._number = 1
        self._incarnation = 1
        self._left_out = False
        self._sent_bytes = 0
        # A server has no substitute: a fit without it fails, and so the hostile one at least hosts its slice.
        self._say(Kind.HELLO, dict(_BODIES[0][1]), None, 1, 0)
        if self.hostile >= FIRST_SERVER or choices.below(2):
            self._number += 1
            self._say(Kind.READY, _READY, None, self._number, 0)

    def go_on(self) -> None:
        """The next thing that happens."""
        what = self._choices.below(8)
        if what < 4:
            self._hostile_word()
        elif what < 7:
            self._honest_word(self._choices.pick(self.honest))
        else:
            self._driver_command()
        self._check()

    def end(self) -> None:
        """Everyone else goes on to the end; the driver leaves the hostile member out where it does not get ready."""
        member = self.state.members[self.hostile]
        if self.hostile >= FIRST_SERVER and not member.ready:
            # A fit without its server fails; this one was started again, and does what it must.
            self._number = self.coordinator._posts[self.hostile].got + 1
            self._take(Message(Kind.READY, self.hostile, member.incarnation, body=_READY, number=self._number))
        for _ in range(60):
            for member in self.honest:
                self._honest_word(member)
            self._drive()
            self._check()
            if all(member.ended for member in self.honest):
                break
        assert all(member.ended for member in self.honest), "an honest member waits for ever"
        held = self.state.held()
        for member in self.honest:
            if member.rank < FIRST_SERVER:
                assert self.state.laps_done[member.rank] == LAPS
                assert member.rank in held

    def _honest_word(self, member: Member) -> None:
        member.hear(self.endpoint.taken(member.client))
        found = next(member.words, None)
        if found is not None:
            self.coordinator._take(member.client, found[1])
            member.hear(self.endpoint.taken(member.client))

    def _drive(self) -> None:
        """What the driver does when the honest members have come far enough."""
        state = self.state
        workers = [member for member in self.honest if member.rank < FIRST_SERVER]
        if self.hostile < FIRST_SERVER and not self._left_out:
            self._left_out = True
            self._act(state.leave_out(self.hostile))
        ready = all(rank in state.members and state.members[rank].ready for rank in self._needed())
        if state.needs_all and not state.started and ready:
            self._act(state.start())
        if self._laps < LAPS and all(state.laps_done.get(each.rank, 0) > self._laps for each in workers):
            self._act(state.go(self._laps, None, last=self._laps == LAPS - 1))
            self._laps += 1
        if self._laps == LAPS:
            self._act(state.release())

    def _needed(self) -> list[int]:
        known = [member.rank for member in self.honest]
        return known if self._left_out else [*known, self.hostile]

    def _driver_command(self) -> None:
        state = self.state
        way = self._choices.below(6)
        if way == 0:
            self._act(state.alive())
        elif way == 1:
            self._act(state.probe())
        elif way == 2:
            self._act(state.save(self._choices.below(3)))
        elif way == 3 and state._hosts:
            self._act(state.ask_for_parameters())
        elif way == 4 and state.started and state._rows.keys() - state.left_out:
            self._act(state.ask_one_for_parameters())
        else:
            ready = all(rank in state.members and state.members[rank].ready for rank in self._needed())
            if state.needs_all and not state.started and ready:
                self._act(state.start())

    def _act(self, actions: Any) -> None:
        self.coordinator._act(actions, b"")

    def _hostile_word(self) -> None:
        choices = self._choices
        kind, told = choices.pick(_BODIES)
        values = Values(choices, _WORDS)
        body: Any = told
        changed = choices.below(4)
        if changed >= 2:
            body = values.edited(json.loads(json.dumps(told)), 4)
        if changed == 1 and choices.below(16) == 15:
            body = {**told, choices.pick(list(told) or ["x"]): _HUGE, "slice": {**_PLACE, "address": _HUGE}}
        if not isinstance(body, dict):
            body = {"x": body}
        if choices.below(16) == 15:
            kind = choices.pick(list(Kind))
        number = choices.pick((0, self._number + 1, self._number, 1 << 40))
        round_ = choices.pick([each for each in INTEGERS if 0 <= each <= MAX_COUNTER])
        self._say(kind, body, choices.pick(_PAYLOADS), number, round_)

    def _say(self, kind: Kind, body: Any, payload: bytes | None, number: int, round_: int) -> None:
        """The hostile member's word; when it says HELLO it may be as a newer incarnation."""
        choices = self._choices
        if kind is Kind.HELLO and choices.below(2):
            self._incarnation += 1
            number, self._number = 1, 1
        elif number == self._number + 1:
            self._number += 1
        offset = choices.pick((0, 0, 1, 8, 12, 1 << 40, MAX_COUNTER))
        incarnation = max(0, self._incarnation - (choices.below(16) == 15))
        view = None if payload is None else memoryview(payload)
        message = Message(kind, self.hostile, incarnation, round_, offset, body, view, number)
        self._take(message)

    def _take(self, message: Message) -> None:
        """Take a word of the hostile member, over the one of its two connections that it belongs to."""
        self._sent_bytes += 1 + (0 if message.payload is None else memoryview(cast("Any", message.payload)).nbytes)
        known = self.state.members.get(self.hostile)
        own = b"c%d" % self.hostile
        if message.kind in {Kind.PULSE, Kind.STACKS} and known is not None and known.pulse is not None:
            own = known.pulse
        self.coordinator._take(own, message)
        if (member := self.state.members.get(self.hostile)) is not None:
            self._incarnation = member.incarnation
        self.endpoint.taken(own)

    def _check(self) -> None:
        """What holds at any moment: nobody is there who should not be, and nothing grows by what is said."""
        state, coordinator = self.state, self.coordinator
        ranks = {*range(WORKERS), *range(FIRST_SERVER, FIRST_SERVER + state.placement.server_tasks)}
        for held in (state.members, state.signs, state.tallies, state.laps_done, state.steps_traced, state._rows):
            assert set(held) <= ranks
        assert set(state._hosts) <= ranks
        assert set(coordinator._clients) == set(coordinator._posts) == set(state.members)
        for rank in state._norms._parts:
            assert rank in ranks or len(state._norms._parts) <= len(ranks)
        assert sum(len(each) for each in state._norms._parts.values()) <= 4 * len(ranks)
        assert all(each.taken <= self._sent_bytes for each in state._states._arriving.values())
        assert len(state._states._arriving) <= 2 * len(ranks) ** 2
        assert state.uploaded.size in {0, LAYOUT.size}
