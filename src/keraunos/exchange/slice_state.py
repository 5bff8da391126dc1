"""The logic of a slice's server: messages in, actions out, no I/O, no clock, no threads. Runs where it is hosted.

A worker joins, then contributes to round after round. Under a synchronous plan a round closes when every rank that
trains has sent its contribution or passed, and everyone gets the same RESULT. Otherwise each contribution is applied
when it is complete and its sender alone gets the new parameters; under a bounded plan the sender gets them once it
is not too far ahead of the slowest. A contribution carries (rank, incarnation, round): what was applied already is
answered again and not applied again, an older incarnation is refused, and what does not fit is counted and dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from keraunos.errors import ExchangeError
from keraunos.exchange.content import Content, Handlers
from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import MOST_PARTS
from keraunos.exchange.messages import Again, Join, Joined, Leave, Pass, Push, Refused, Resend, RoundResult, content_of
from keraunos.exchange.rules.rule import Rule, Sent
from keraunos.exchange.sharding import Slice
from keraunos.exchange.wire import LEFT_OUT, MALFORMED, Message, WireError, chunk_at
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.saving import SavePoints
from keraunos.parameters import Vector


class RuleError(ExchangeError):
    """A rule raised while it was applied; the slice cannot go on."""


@dataclass(frozen=True)
class Reply:
    """Answer a rank; `vector` goes with it. `to_sender` marks an answer for whoever just spoke, member or not."""

    said: Joined | RoundResult | Refused | Resend
    rank: int
    incarnation: int
    round: int = 0
    vector: Vector | None = None
    to_sender: bool = False

    @property
    def message(self) -> Message:
        """The message without the vector."""
        return self.said.message(self.rank, self.incarnation, self.round)


@dataclass(frozen=True)
class Offer:
    """Make buffers for a rank's contributions of this length before it is answered."""

    rank: int
    length: int


@dataclass(frozen=True)
class PartialNorm:
    """Ask the other slices for the rest of a round's squared norm."""

    round: int
    value: float


@dataclass(frozen=True)
class Save:
    """Keep what the slice is now, before this round of a synchronous plan."""

    round: int


Action = Reply | Offer | PartialNorm | Save


@dataclass
class Member:
    """One rank as the server of a slice sees it."""

    incarnation: int
    mark: str | None
    parts: int
    round: int = 0
    read_at: int = 0
    staleness: int = 0
    waiting: bool = False
    wants_first: bool = False
    gone: bool = False
    received: set[int] = field(default_factory=set)
    elements: int = 0
    sent: Sent | None = None
    passed: bool = False
    behind: int | None = None
    sharing: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is missing from this rank in the open round."""
        return self.passed or (self.sent is not None and self.elements >= self.sent.values.size)

    def forget(self) -> None:
        """Drop what came for the open round."""
        self.received = set()
        self.elements = 0
        self.sent = None
        self.passed = False


class SliceState:
    """All that the server of one slice knows.

    `buffer_of(rank)` is the vector that holds that rank's contribution, and `decode` puts a chunk's payload into a
    part of it. `result` is what a RESULT carries, which is the parameters themselves where the rule gives those;
    `empty` says that there is none: everyone has passed, and the parameters are on the workers.
    """

    def __init__(
        self,
        plan: ExchangePlan,
        part: Slice,
        rule: Rule,
        parameters: Vector,
        result: Vector,
        *,
        buffer_of: Callable[[int], Vector],
        decode: Callable[[Any, Vector], None],
        alone: bool = True,
    ) -> None:
        self.plan = plan
        self.part = part
        self.rule = rule
        self.parameters = parameters
        self.result = result
        self.members: dict[int, Member] = {}
        self.ranks: frozenset[int] = frozenset()
        self.excluded: set[int] = set()
        self.dropped = 0
        self.applied = 0
        self.contributed: Counter[int] = Counter()
        self.saves = SavePoints()
        self._standing: dict[int, int] = {}
        self.empty = False
        self._closing: tuple[int, ...] = ()
        self._asked: list[Action] = []
        self._alone = alone
        self._buffer_of = buffer_of
        self._decode = decode
        self._handlers: Handlers[Message, list[Action]] = Handlers()
        self._handlers.on(Join, self._join)
        self._handlers.on(Push, self._push)
        self._handlers.on(Pass, self._pass)
        self._handlers.on(Again, self._again)
        self._handlers.on(Leave, self._leave)

    def expect(self, ranks: Iterable[int]) -> list[Action]:
        """These ranks take part: a round that needs everyone needs all of them, joined or not yet."""
        self.ranks = frozenset(ranks)
        return self._progress()

    def remove(self, rank: int) -> list[Action]:
        """Go on without a rank."""
        self.ranks -= {rank}
        if rank in self.members:
            self.members[rank].gone = True
        return self._progress()

    @property
    def open_round(self) -> int:
        """The round of a synchronous plan that is open."""
        return max((self.members[rank].round for rank in self.ranks if rank in self.members), default=0)

    def keep(self) -> Kept:
        """What this slice is now."""
        rounds = self._standing | {rank: member.round for rank, member in self.members.items()}
        parameters = self.parameters[: 0 if self.plan.applies_on_workers else None].copy()
        return Kept(rounds, dict(self.contributed), self.applied, [parameters, *self.rule.state()])

    def go_on_from(self, kept: Kept) -> None:
        """Be what was kept, before anybody has joined."""
        self._standing = dict(kept.rounds)
        self.contributed = Counter(kept.contributed)
        self.applied = kept.applied
        if not kept.arrays:
            return
        parameters, *rule = kept.arrays
        if parameters.size:
            self.parameters[:] = parameters
            # What was applied already is answered with the parameters, where a rule has given something else.
            self.result[:] = parameters
        if rule:
            self.rule.restore(rule)

    def exclude(self, rank: int) -> list[Action]:
        """Go on without a rank for good: whatever it says from now on is refused, and applied by nobody."""
        self.excluded.add(rank)
        return self.remove(rank)

    @property
    def missing(self) -> list[int]:
        """The ranks that the open round, or those who wait, wait for."""
        if self.plan.synchronous:
            members = {rank: self.members.get(rank) for rank in self.ranks}
            return sorted(rank for rank, each in members.items() if each is None or not each.complete)
        if not any(each.waiting and not each.gone for each in self.members.values()):
            return []
        slowest = min((self._clock(rank) for rank in self.ranks), default=0)
        return sorted(rank for rank in self.ranks if self._clock(rank) == slowest)

    def receive(self, message: Message, said: Content | None = None) -> list[Action]:
        """What follows from a message; nothing that arrives can raise, only a rule that fails, with `RuleError`.

        `said` is what it says, where it comes from this process and needs no reading.
        """
        try:
            handler = self._handlers.of(message.kind)
            if handler is None:
                return self._drop()
            known = self.members.get(message.rank)
            excluded = message.rank in self.excluded
            if excluded or (known is not None and message.incarnation < known.incarnation):
                self.dropped += 1
                refused = Refused(LEFT_OUT if excluded else None)
                return [Reply(refused, message.rank, message.incarnation, to_sender=True)]
            if message.kind is not Join.kind and (known is None or message.incarnation > known.incarnation):
                return self._drop()
            content: Any = content_of(message) if said is None else said
            if known is not None and message.incarnation == known.incarnation:
                known.sharing |= content.shared
            return handler(message, content)
        except MALFORMED:
            return self._drop()

    def total_norm(self, round_: int, value: float) -> list[Action]:
        """The squared norm over all slices for the round that is closing."""
        if not self._closing or round_ != self.open_round:
            return []
        return self._close(value)

    def _drop(self) -> list[Action]:
        self.dropped += 1
        return []

    def _join(self, message: Message, join: Join) -> list[Action]:
        parts, mark = join.parts, join.mark
        expected = self.ranks or range(self.rule.workers)
        if not self._are_parts(parts, message.rank) or message.rank not in expected:
            return self._drop()
        known = self.members.get(message.rank)
        actions: list[Action] = [Offer(message.rank, self.part.contribution_size(parts))]
        if known is None:
            round_ = self._standing.get(message.rank, 0)
            known = self.members[message.rank] = Member(message.incarnation, mark, parts, round_)
            known.read_at = self.applied
            if message.rank in self._standing and not self.plan.synchronous:
                # Slices are kept each at its own moment: this one may be some rounds ahead of another.
                known.behind = 0
        elif message.incarnation == known.incarnation:
            # Said twice: what has arrived stays where it is.
            actions = []
        else:
            known.incarnation, known.mark, known.parts, known.gone = message.incarnation, mark, parts, False
            known.sharing = False
            # Its predecessor's contribution was not applied, and it will send that round again; unless the round is
            # closing right now, in which case it is answered as a repetition.
            if not self._closing:
                known.forget()
        actions.append(Reply(Joined(), message.rank, message.incarnation, known.round))
        if join.wants_parameters:
            # One that came back gets no further ahead than it would have as it was.
            known.wants_first = known.waiting
            if not known.waiting:
                actions.append(self._first(message.rank, known))
        return actions

    def _are_parts(self, parts: int, rank: int) -> bool:
        """Whether a rank's contributions can be added to the others': all have as many parts, for one model."""
        if self.plan.send != "gradients":
            return parts == 1
        others = {each.parts for other, each in self.members.items() if other != rank and not each.gone}
        return 1 <= parts <= MOST_PARTS and others <= {parts}

    def _first(self, rank: int, member: Member) -> Reply:
        member.read_at = self.applied
        member.wants_first = False
        return Reply(RoundResult(first=True), rank, member.incarnation, member.round, self.parameters)

    def _push(self, message: Message, push: Push) -> list[Action]:
        member = self.members[message.rank]
        if message.round < member.round:
            return self._answer_again(message, member)
        if message.round > member.round or message.offset in member.received or member.waiting:
            return self._drop()
        if member.passed or member.complete:
            return self._drop()
        buffer = self._buffer_of(message.rank)
        sent = member.sent
        if push.rows is not None:
            if len(push.denominators) != member.parts:
                raise WireError("a contribution has one denominator a part")
            sent = Sent(buffer, push.denominators, push.rows, squared_norm=push.squared_norm, rank=message.rank)
        elements = self._place(message, buffer)
        member.elements += elements
        member.received.add(message.offset)
        member.sent = sent
        if not member.complete:
            return []
        return self._close_if_complete() if self.plan.synchronous else self._apply(message.rank, member)

    def _place(self, message: Message, buffer: Vector) -> int:
        """Put a chunk where it belongs and say how many elements it brought; without payload it is there already."""
        if message.payload is None:
            if message.offset:
                raise WireError("what is there already is there as a whole")
            return buffer.size
        start, stop = chunk_at(message.offset, buffer.size, buffer.itemsize)
        self._decode(message.payload, buffer[start:stop])
        return stop - start

    def _pass(self, message: Message, _: Pass) -> list[Action]:
        member = self.members[message.rank]
        if message.round < member.round:
            return self._answer_again(message, member)
        if message.round > member.round or member.elements or member.waiting:
            return self._drop()
        if not self.plan.synchronous:
            return self._apply(message.rank, member)
        member.passed = True
        return self._close_if_complete()

    def _leave(self, message: Message, _: Leave) -> list[Action]:
        return self.remove(message.rank)

    def _again(self, message: Message, _: Again) -> list[Action]:
        """A rank waits for a round's result: it, or its contribution, may have been lost on the way.

        A rank asks behind all that it has sent, so that what is not here by now will not come by itself.
        """
        member = self.members[message.rank]
        if message.round > member.round:
            return self._drop()
        if message.round < member.round:
            return [] if member.waiting else self._answer_again(message, member)
        if member.complete:
            return list(self._asked)
        return [Reply(Resend(), message.rank, message.incarnation, message.round)]

    def _answer_again(self, message: Message, member: Member) -> list[Action]:
        """Answer what was applied before: the last round, or, for one that catches up, one after the other."""
        catches_up = member.behind is not None and message.round >= member.behind
        if member.waiting or not (message.round == member.round - 1 or catches_up):
            return self._drop()
        if catches_up:
            member.behind = message.round
        answer = self._answer(message.rank, member)
        return [replace(answer, round=message.round)]

    def _answer(self, rank: int, member: Member) -> Reply:
        member.read_at = self.applied
        if self.empty:
            return Reply(RoundResult(empty=True), rank, member.incarnation, member.round - 1)
        said = RoundResult(staleness=member.staleness)
        return Reply(said, rank, member.incarnation, member.round - 1, self.result)

    def _progress(self) -> list[Action]:
        return self._close_if_complete() if self.plan.synchronous else self._release()

    def _close_if_complete(self) -> list[Action]:
        members = [self.members.get(rank) for rank in self.ranks]
        if self._closing or not members or not all(each is not None and each.complete for each in members):
            return []
        sent = self._contributions()
        if not sent or not self.rule.needs_norm:
            return self._close(None)
        with _of_the_rule():
            norm = self.rule.squared_norm(sent)
        if self._alone:
            return self._close(norm)
        self._closing = tuple(sorted(self.ranks))
        self._asked = [PartialNorm(self.open_round, norm)]
        return list(self._asked)

    def _contributions(self) -> list[Sent]:
        # One that leaves while its round is closing has its part in the norm, so it stays in what is applied.
        found = [self.members[rank].sent for rank in self._closing or sorted(self.ranks)]
        return [each for each in found if each is not None]

    def _close(self, squared_norm: float | None) -> list[Action]:
        sent = self._contributions()
        if sent:
            with _of_the_rule():
                self.rule.apply(sent, self.parameters, self.result, squared_norm=squared_norm)
        else:
            self._give_parameters()
        self._closing = ()
        self._asked = []
        self.empty = not sent and self.plan.applies_on_workers
        self.applied += len(sent)
        for each in sent:
            self.contributed[each.rank] += each.rows
        replies: list[Action] = []
        for rank in sorted(self.ranks):
            member = self.members[rank]
            member.forget()
            member.round += 1
            replies.append(self._answer(rank, member))
        # Behind the answers: those that wait for them need not wait for this.
        return [*replies, *([Save(self.open_round)] if self.saves.due(self.open_round) else [])]

    def _apply(self, rank: int, member: Member) -> list[Action]:
        if member.sent is not None:
            member.staleness = max(0, self.applied - member.read_at)
            sent = replace(member.sent, staleness=member.staleness)
            with _of_the_rule():
                self.rule.apply([sent], self.parameters, self.result, squared_norm=sent.squared_norm)
            self.contributed[rank] += sent.rows
            self.applied += 1
        else:
            self._give_parameters()
        member.forget()
        member.behind = None
        member.round += 1
        if self.plan.meet != "bounded":
            return [self._answer(rank, member)]
        member.waiting = True
        return self._release()

    def _give_parameters(self) -> None:
        """Without a contribution there is nothing that a rule of its own kind could give."""
        if not self.rule.gives_parameters and not self.plan.applies_on_workers:
            np.copyto(self.result, self.parameters)

    def _release(self) -> list[Action]:
        """Answer those who waited and are not too far ahead any more."""
        slowest = min((self._clock(rank) for rank in self.ranks), default=0)
        # While a worker waits for nothing, it is one round further than what it has sent.
        allowed = (self.plan.bound or 0) - (1 if self.plan.overlaps else 0)
        freed = []
        for rank, member in sorted(self.members.items()):
            if member.waiting and not member.gone and member.round - slowest <= allowed:
                member.waiting = False
                freed.append(self._first(rank, member) if member.wants_first else self._answer(rank, member))
        return list(freed)

    def _clock(self, rank: int) -> int:
        member = self.members.get(rank)
        return 0 if member is None else member.round


@contextmanager
def _of_the_rule() -> Iterator[None]:
    """A rule's own failure is no fault of the message that it was called for."""
    try:
        yield
    except Exception as error:
        raise RuleError(f"The rule failed: {type(error).__name__}: {error}") from error
