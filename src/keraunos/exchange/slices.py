"""A worker's side of the parameters: contributions out, results in, over all slices. Runs in the thread that trains.

Each slice has a link of its own; a slice that this worker hosts itself, under a synchronous plan, is spoken to
directly. On a slice's own host vectors are written and read in shared memory and only short messages travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np

from keraunos.exchange.client import Client
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.link import Link
from keraunos.exchange.message_parts import SlicePlace
from keraunos.exchange.messages import Join, Leave, Pass, Push, Start
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector
from keraunos.exchange.slice_link import HostedLink, RemoteLink, SliceLink
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.waits import Wait
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout, Vector


class Slices:
    """All slices of a job, as one vector; a context manager that belongs to the client's thread.

    What `collect` gives is good until the next contribution. `before_share` is called before a round is shared;
    `owed` is then what goes with the one after it.
    """

    def __init__(
        self,
        client: Client,
        plan: ExchangePlan,
        layout: Layout,
        parts: int,
        start: Start,
        *,
        hosted: SliceServer | None = None,
        bells: Doorbells | None = None,
    ) -> None:
        self._client = client
        self._plan = plan
        self._layout = layout
        self._parts = parts
        self._places = start.slices
        self._hosted = hosted
        self.before_share: Callable[[], None] | None = None
        self._bells = bells if hosted is not None else None
        self._stack = ExitStack()
        self._links: list[SliceLink] = []
        offer = start.common
        self._common = SharedVector.open(offer) if offer and client.mark is not None else None
        self._whole: Vector = layout.empty() if self._common is None else self._common.vector

    def __enter__(self) -> Self:
        with self._stack:
            if self._common is not None:
                self._stack.callback(self._common.close)
            for place in self._places:
                self._links.append(self._link(place))
                self._stack.callback(self._links[-1].close)
            if self._hosted is not None:
                # Also while this worker waits for something else: the others may need its slice.
                self._client.attend(self._hosted.socket, self._hosted.pump)
            if self._bells is not None:
                self._client.on_sleep = partial(self._bells.sleep, self._client.rank)
            self._stack.callback(self._client.dismiss)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._whole = np.empty(0, dtype=self._whole.dtype)
        self._stack.close()

    @property
    def first_needed(self) -> bool:
        """Whether a worker must have had the parameters whole before it can read a result."""
        return self._plan.compression is not None and not self._plan.applies_on_workers

    def join(self, *, wants_parameters: bool) -> int:
        """Join every slice; the round at which this rank stands. With `wants_parameters` they come, too."""
        wants = wants_parameters or self.first_needed
        join = Join(self._parts, self._client.mark, wants)
        for link in self._links:
            link.send(join)
        self._client.wait_until(lambda: all(link.joined for link in self._links) or None, Wait.SLICES, self._ask_again)
        for link in self._links:
            link.share(self._common, self._bells)
        return min(link.round for link in self._links)

    def parameters(self) -> Vector:
        """What the servers held when this worker joined with `wants_parameters`."""
        waiting = list(self._links)
        whole = self._layout.empty()

        def arrived() -> bool | None:
            for link in list(waiting):
                first = link.first()
                if first is not None:
                    np.copyto(whole[link.part.start : link.part.stop], first)
                    waiting.remove(link)
            return None if waiting else True

        self._client.wait_until(arrived, Wait.PARAMETERS, self._ask_again)
        return whole

    def push(
        self,
        round_: int,
        values: Vector,
        denominators: Sequence[float | None],
        rows: int,
        squared_norm: float | None = None,
    ) -> None:
        """Contribute to a round; `values` must stay as they are until `collect`."""
        contributions = [(link, link.part.of_contribution(values, self._parts)) for link in self._links]
        for link, views in contributions:
            link.encode(views)
        self._about_to_share()
        push = Push(rows, tuple(denominators), squared_norm)
        for link, views in contributions:
            link.push(round_, views, push)

    def pass_round(self, round_: int) -> None:
        """Take part in a round without a contribution."""
        self._about_to_share()
        for link in self._links:
            link.expect(round_)
            link.send(Pass(), round_)

    @property
    def empty(self) -> bool:
        """Whether what was collected last is no result: everyone has passed, and the servers have no parameters."""
        return any(link.empty for link in self._links)

    def collect(self, round_: int) -> Vector:
        """The result of a round, once it is here; nothing where it is `empty`."""
        for link in self._links:
            link.expect(round_)
        self._client.wait_until(
            lambda: all(link.complete() for link in self._links) or None, Wait.RESULT, self._ask_again
        )
        if self.empty:
            return self._whole
        if len(self._links) == 1:
            return self._links[0].result()
        for link in self._links:
            if not (link.in_common and self._common is not None):
                np.copyto(self._whole[link.part.start : link.part.stop], link.result())
        return self._whole

    @property
    def owed(self) -> Vector:
        """What was rounded off this rank's contributions and goes with its next one: a copy, often of nothing."""
        return np.concatenate([link.owed for link in self._links])

    def owe(self, owed: Vector) -> None:
        """Go on from what `owed` was."""
        place = 0
        for link in self._links:
            np.copyto(link.owed, owed[place : place + link.owed.size])
            place += link.owed.size

    def leave(self) -> None:
        """Say to every slice that this rank contributes no more."""
        for link in self._links:
            link.send(Leave())

    def _about_to_share(self) -> None:
        if self.before_share is not None:
            self.before_share()

    def _ask_again(self) -> None:
        for link in self._links:
            link.ask_again()

    def _link(self, place: SlicePlace) -> SliceLink:
        part = Slice(self._layout, place.start, place.stop)
        host_rank = -1 if place.host_rank is None else place.host_rank
        client = self._client
        if self._hosted is not None and host_rank == client.rank:
            return HostedLink(part, self._hosted, client)
        link = self._stack.enter_context(Link(client.context, place.connection, client.rank, client.incarnation))
        link.patience = client.patience
        remote = RemoteLink(part, link, client, self._plan, self._parts, host_rank)
        client.attend(link.socket, remote.listen)
        return remote
