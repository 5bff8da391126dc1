"""What the coordinator's logic is told in, and what it knows of each member. Runs on the driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from keraunos.exchange.content import Content
from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.messages import Hello
from keraunos.exchange.wire import Kind, Message


@dataclass(frozen=True)
class Send:
    """Send a message to a member; `to_sender` marks an answer for whoever just spoke, member or not.

    `to_former` is for the one whose rank another has just taken.
    """

    rank: int
    message: Message
    to_sender: bool = False
    to_former: bool = False


@dataclass(frozen=True)
class Arrived:
    """A member has joined; `again` where its rank had before."""

    kind: ClassVar[Kind] = Kind.HELLO
    hello: Hello
    incarnation: int
    again: bool


@dataclass(frozen=True)
class Prepared:
    """A member is ready; a server has no shard. `changed`: its rows are not those that the rank had before."""

    kind: ClassVar[Kind] = Kind.READY
    shard: ShardFacts | None = None
    changed: bool = False


@dataclass(frozen=True)
class StateGiven:
    """A rank's state to write down, or a slice's; with `last` the optimizer's that training led to."""

    kind: ClassVar[Kind] = Kind.STATE
    slice: Kept | None = None
    last: bool = False


@dataclass(frozen=True)
class LeftOut:
    """The others go on without a worker, which was away for so long."""

    kind: ClassVar[Kind] = Kind.REMOVE
    seconds: float


@dataclass(frozen=True)
class Event:
    """Something the driver wants to know: what a member said, or what has come of it, and the arrays that came."""

    said: Content | Arrived | Prepared | StateGiven | LeftOut
    rank: int
    arrays: list[Any] = field(default_factory=list)
    round: int = 0

    @property
    def kind(self) -> Kind:
        """The kind of message that it is about."""
        return self.said.kind


Action = Send | Event


@dataclass
class Member:
    """One rank as the coordinator sees it."""

    incarnation: int
    host: str
    mark: str | None = None
    ready: bool = False
    started: bool = False
    gone: bool = False
    returning: bool = False
    pulse: bytes | None = None
    asked_for: int | None = None
    wanted_round: int | None = None
