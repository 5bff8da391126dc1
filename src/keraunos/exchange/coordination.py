"""What the coordinator's logic is told in, and what it knows of each member. Runs on the driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
class Event:
    """Something the driver wants to know: the worker's message that says it, checked."""

    kind: Kind
    rank: int
    body: dict[str, Any]
    arrays: list[Any] = field(default_factory=list)
    round: int = 0


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
