"""One slice as a worker sees it: over a link, or in its own process. Runs in the thread that trains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keraunos.exchange.arrivals import Arrivals
from keraunos.exchange.client import Client, Stopped, Superseded
from keraunos.exchange.content import Content
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.link import Link
from keraunos.exchange.messages import (
    Again,
    Join,
    Joined,
    Leave,
    Offers,
    Pass,
    Push,
    Refused,
    Resend,
    RoundResult,
    content_of,
)
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.uplink import Uplink, fill
from keraunos.exchange.wire import Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Vector

_NONE = -1


class SliceLink(ABC):
    """The way to one slice.

    A result is asked for with `expect`, is here when `complete`, and is good until the next contribution.
    """

    def __init__(self, part: Slice) -> None:
        self.part = part
        self.joined = False
        self.round = 0

    @abstractmethod
    def send(self, said: Join | Pass | Leave, round_: int = 0) -> None:
        """Say something short."""

    def encode(self, views: Sequence[Vector]) -> None:  # noqa: B027 - may be nothing
        """Do what can be done with a contribution before it is pushed; it will be."""

    @property
    def residual(self) -> Vector:
        """What was rounded off the last contribution and goes with the next one, where it lies; most have none."""
        return np.empty(0, np.float32)

    @abstractmethod
    def push(self, round_: int, views: Sequence[Vector], push: Push) -> None:
        """Contribute this slice's part."""

    @abstractmethod
    def expect(self, round_: int) -> None:
        """From now on the result of that round is wanted."""

    @abstractmethod
    def complete(self) -> bool:
        """Whether the wanted result is here."""

    @abstractmethod
    def first(self) -> Vector | None:
        """The parameters that were asked for with joining, once they are here."""

    @abstractmethod
    def result(self) -> Vector:
        """The result that is complete, where it lies."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether the result that is complete is none: nobody has contributed to its round."""

    @property
    @abstractmethod
    def in_common(self) -> bool:
        """Whether that is in the one vector that all workers of this host see."""

    def ask_again(self) -> None:  # noqa: B027 - may be nothing
        """Ask once more for what has not come for a while: a connection may have broken, and lost it."""

    def share(self, common: SharedVector | None, bells: Doorbells | None) -> None:  # noqa: B027 - may be nothing
        """Use memory that both sides see, where the server offered some."""

    def close(self) -> None:  # noqa: B027 - may be nothing
        """Give shared memory back."""


class HostedLink(SliceLink):
    """The slice that this worker hosts itself, and pumps while it waits."""

    def __init__(self, part: Slice, server: SliceServer, client: Client) -> None:
        super().__init__(part)
        self._server = server
        self._client = client
        self._wanted = _NONE

    def send(self, said: Join | Pass | Leave, round_: int = 0) -> None:
        """Say it to the server's state."""
        # There is no memory to share with oneself.
        own = replace(said, mark=None) if isinstance(said, Join) else said
        self._server.submit(self._message(own, round_), own)
        if isinstance(said, Join):
            self.joined = True
            self.round = self._server.state.members[self._client.rank].round

    def push(self, round_: int, views: Sequence[Vector], push: Push) -> None:
        """The contribution is used where it lies."""
        self.expect(round_)
        self._server.submit(self._message(push, round_), push, views)

    def expect(self, round_: int) -> None:
        """From now on the result of that round is wanted."""
        self._wanted = round_

    def complete(self) -> bool:
        """Whether the server has answered."""
        return self._server.answered >= self._wanted

    def first(self) -> Vector | None:
        """The server's parameters."""
        return self._server.state.parameters

    def result(self) -> Vector:
        """The server's own result."""
        return self._server.state.result

    @property
    def empty(self) -> bool:
        """As the server's state says."""
        return self._server.state.empty

    @property
    def in_common(self) -> bool:
        """Where the server puts it there."""
        return self._server.in_common

    def _message(self, said: Content, round_: int) -> Message:
        return Message(said.kind, self._client.rank, self._client.incarnation, round_)


class RemoteLink(SliceLink):
    """A slice behind a link; on its server's host, in memory that both share."""

    def __init__(self, part: Slice, link: Link, client: Client, plan: ExchangePlan, parts: int, host_rank: int) -> None:
        super().__init__(part)
        self._link = link
        link.tally = client.tally
        self._client = client
        self._host_rank = host_rank
        itemsize = np.dtype(part.layout.dtype).itemsize
        self._shared_bytes = part.size * itemsize
        self._uplink = Uplink(plan.compression, part.contribution_size(parts), itemsize)
        self._arrivals = Arrivals(plan, part.size, part.layout.dtype)
        self._offers: Offers | None = None
        self._upload: SharedVector | None = None
        self._download: SharedVector | None = None
        self._common: Vector | None = None
        self._bells: Doorbells | None = None
        self._wanted = _NONE
        self._arrived = False
        self._by_socket = False
        self._joining = False
        self._said: list[tuple[Content, int, int, Any]] = []
        self._encoded: list[tuple[int, Any, bool]] = []
        self._moved = False
        self._empty = False

    def send(self, said: Join | Pass | Leave, round_: int = 0) -> None:
        """Say it over the socket."""
        self._joining |= isinstance(said, Join)
        self._note(said, round_)
        self._say()

    def encode(self, views: Sequence[Vector]) -> None:
        """Make the bytes that are sent, where they are others than the contribution's own."""
        if self._upload is None:
            self._encoded = list(self._uplink.pieces(views))

    @property
    def residual(self) -> Vector:
        """As the uplink has it."""
        return self._uplink.residual

    def push(self, round_: int, views: Sequence[Vector], push: Push) -> None:
        """Put the contribution into shared memory and say so, or send it."""
        self.expect(round_)
        if self._upload is not None:
            fill(self._upload.vector, views)
            self._client.tally.bytes_shared += self._upload.vector.nbytes
            self._note(push, round_)
            if not self._ring(round_, push):
                self._say()
            return
        self._said = [(push if last else Push(), round_, start, payload) for start, payload, last in self._encoded]
        self._say()

    def expect(self, round_: int) -> None:
        """From now on the result of that round is wanted."""
        if self._wanted != round_ or self._joining:
            self._joining = False
            self._want(round_)

    def complete(self) -> bool:
        """Whether the server has said so, or rung."""
        if self._bells is not None and not self._arrived and self._bells.result(self._host_rank) == self._wanted:
            # A result that is none is never rung for.
            self._arrived, self._by_socket, self._empty = True, False, False
            self._count_shared()
        return self._arrived

    def first(self) -> Vector | None:
        """What came behind the answer to joining."""
        if not self._arrived:
            return None
        # A round has the number that the joining had.
        self._wanted = _NONE
        self._joining = False
        return self._arrivals.values

    def ask_again(self) -> None:
        """Join again, or ask for the result, unless it is just coming in."""
        moved, self._moved = self._moved, False
        if moved or (self._arrived and not self._joining):
            return
        if self._joining:
            self._say()
        else:
            self._link.send(Again.kind, self._wanted)

    def result(self) -> Vector:
        """Where the server put it, or where its chunks were put together."""
        if self._by_socket:
            return self._arrivals.values
        if self._download is not None:
            return self._download.vector
        assert self._common is not None
        return self._common

    @property
    def empty(self) -> bool:
        """As the server has said."""
        return self._empty

    @property
    def in_common(self) -> bool:
        """Where it came neither over the socket nor into memory for this worker."""
        return not self._by_socket and self._download is None

    def listen(self) -> bool:
        """Take what the slice's server said; whether there was something."""
        some = False
        while (message := self._link.receive()) is not None:
            some = True
            self._take(message)
        return some

    def share(self, common: SharedVector | None, bells: Doorbells | None) -> None:
        """Open what the server offers, where both sides are on one host."""
        offers = self._offers
        if offers is None or self._client.mark is None or self._upload is not None:
            return
        if offers.result is None:
            if common is None:
                return
            self._upload = SharedVector.open(offers.upload)
            self._common = common.vector[self.part.start : self.part.stop]
            self._bells = bells if self._upload is not None else None
            return
        regions = [SharedVector.open(each) for each in (offers.upload, offers.result)]
        if all(region is not None for region in regions):
            self._upload, self._download = regions
            return
        for region in regions:
            if region is not None:
                region.close()

    def close(self) -> None:
        """Give shared memory back."""
        self._common = None
        for region in (self._upload, self._download):
            if region is not None:
                region.close()

    def _ring(self, round_: int, push: Push) -> bool:
        """Say that a contribution lies ready; `False` where the server must be told over the socket."""
        bells = self._bells
        if bells is None or push.squared_norm is not None or push.rows is None:
            return False
        rung = bells.push(self._host_rank, self._client.rank, round_, push.denominators, push.rows)
        return rung and not bells.is_asleep(self._host_rank)

    def _take(self, message: Message) -> None:
        self._moved = True
        said = content_of(message)
        if isinstance(said, Refused):
            if said.reason is None:
                raise Superseded("a newer incarnation of this rank has taken over")
            raise Stopped(said.reason)
        if isinstance(said, Joined) and self._joining:
            self.joined = True
            self.round = message.round
            self._offers = said.shared
            self._want(message.round)
        elif isinstance(said, Resend) and message.round == self._wanted and not self._joining:
            self._say()
        elif isinstance(said, RoundResult) and self._is_wanted(message, said):
            self._by_socket = message.payload is not None
            self._empty = said.empty
            self._arrived = self._arrivals.take(message, said) if self._by_socket else True
            self._client.tally.staleness = said.staleness
            if not (self._by_socket or said.empty):
                self._count_shared()

    def _count_shared(self) -> None:
        """A result lies in shared memory, as many bytes as the slice has."""
        self._client.tally.bytes_shared += self._shared_bytes

    def _is_wanted(self, message: Message, result: RoundResult) -> bool:
        # The parameters for one who joins have the number of the round that follows.
        return message.round == self._wanted and not self._arrived and result.first == self._joining

    def _want(self, round_: int) -> None:
        self._wanted = round_
        self._arrived = False
        self._arrivals.expect()

    def _note(self, said: Join | Push | Pass | Leave, round_: int) -> None:
        """Something short is to be said."""
        self._said = [(said if self._upload is None else replace(said, shared=True), round_, 0, None)]

    def _say(self) -> None:
        """Send what is to be said, for the first time or again; it stays as it is until it is answered."""
        for said, round_, offset, payload in self._said:
            self._client.tally.sent = f"{said.kind.name} {round_}"
            self._link.send(said.kind, round_, offset, said.body(), payload)
