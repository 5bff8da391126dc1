"""The transport to slices of the parameters on our own servers. Runs in the thread that trains.

Each slice has a link of its own; a slice that this worker hosts itself, under a synchronous plan, is spoken to
directly. On a slice's own host vectors are written and read in shared memory and only short messages travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from keraunos.exchange.client import Client
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.hosting import SliceHost, slice_of
from keraunos.exchange.link import Link
from keraunos.exchange.message_parts import SliceAddress, SlicePlace
from keraunos.exchange.messages import Join, Leave, Pass, Push, Start
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector
from keraunos.exchange.slice_link import HostedLink, RemoteLink, SliceLink
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.transports.transport import LearnerParameters, Transport
from keraunos.exchange.waits import Wait
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import Placement
from keraunos.job.rule_declaration import MEETINGS
from keraunos.job.saving import SavePoints
from keraunos.parameters import Vector


class Slices(Transport):
    """All slices of a job, as one vector. Where each worker hosts a slice, this one's is served meanwhile."""

    meets = MEETINGS
    compresses = True

    def __init__(
        self,
        client: Client,
        plan: ExchangePlan,
        placement: Placement,
        workers: int,
        ports: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(client, plan, placement, workers, ports)
        self._host: SliceHost | None = None
        self._hosted: SliceServer | None = None
        self._bells: Doorbells | None = None
        self._common: SharedVector | None = None
        self._stack = ExitStack()
        self._links: list[SliceLink] = []
        self._whole: Vector = np.empty(0)

    def __enter__(self) -> Self:
        if self._placement.on_workers:
            host = SliceHost(self._client, self._plan, self._workers, self._ports)
            self._host = self._stack.enter_context(host)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._whole = np.empty(0)
        self._stack.close()

    @property
    def address(self) -> SliceAddress | None:
        """Where the slice that this worker hosts can be reached."""
        return None if self._host is None else self._host.address

    def open(self, start: Start, learner: LearnerParameters, parts: int) -> None:
        """Serve the slice that this worker hosts, and connect to all others."""
        self._layout = learner.layout
        self._parts = parts
        self._on_host = learner.on_host
        self.saves = SavePoints.from_json(start.saves)
        if self._host is not None:
            self._hosted = self._begin(self._host, start, learner)
            self._bells = self._host.bells(start) if self._hosted is not None else None
            self.saves = self._host.saves
        offer = start.common
        self._common = SharedVector.open(offer) if offer and self._client.mark is not None else None
        self._whole = self._layout.empty() if self._common is None else self._common.vector
        if self._common is not None:
            self._stack.callback(self._common.close)
        for place in start.slices:
            self._links.append(self._link(place))
            self._stack.callback(self._links[-1].close)
        if self._hosted is not None:
            # Also while this worker waits for something else: the others may need its slice.
            self._client.attend(self._hosted.socket, self._hosted.pump)
        if self._bells is not None:
            self._client.on_sleep = partial(self._bells.sleep, self._client.rank)
        self._stack.callback(self._client.dismiss)

    def join(self, *, wants_parameters: bool) -> tuple[int, Vector | None]:
        """Join every slice, and fetch what the servers hold."""
        # Where results come compressed, as differences, a worker must have had the parameters whole before.
        wants = wants_parameters or (self._plan.compression is not None and not self._plan.applies_on_workers)
        join = Join(self._parts, self._client.mark, wants)
        for link in self._links:
            link.send(join)
        self._client.wait_until(lambda: all(link.joined for link in self._links) or None, Wait.SLICES, self._ask_again)
        for link in self._links:
            link.share(self._common, self._bells)
        return min(link.round for link in self._links), self._parameters() if wants else None

    def contribute(
        self,
        round_: int,
        values: Any,
        denominators: Sequence[float | None],
        rows: int,
        squared_norm: float | None = None,
    ) -> None:
        """Send each slice its part."""
        whole = self._on_host(values)
        contributions = [(link, link.part.of_contribution(whole, self._parts)) for link in self._links]
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
    def serves(self) -> bool:
        """Whether this worker hosts a slice."""
        return self._host is not None

    @property
    def contributed(self) -> Mapping[int, int]:
        """As the slice that this worker hosts has counted."""
        return {} if self._host is None else self._host.contributed

    @property
    def residual(self) -> Vector:
        """What was rounded off for all slices, one behind the other."""
        return np.concatenate([link.residual for link in self._links])

    def restore_residual(self, residual: Vector) -> None:
        """Continue from what `residual` was."""
        place = 0
        for link in self._links:
            np.copyto(link.residual, residual[place : place + link.residual.size])
            place += link.residual.size

    def leave(self) -> None:
        """Say to every slice that this rank contributes no more."""
        for link in self._links:
            link.send(Leave())

    def _begin(self, host: SliceHost, start: Start, learner: LearnerParameters) -> SliceServer | None:
        """Serve this worker's slice; returned where it is to be spoken to directly."""
        part = slice_of(start, self._client.rank, learner.layout)
        plan = self._plan
        parameters = None if plan.applies_on_workers else learner.read()[part.start : part.stop]
        server = host.begin(start, part, parameters, thread=not plan.synchronous)
        if not plan.synchronous:
            return None
        if plan.compression is not None:
            # What others get is not what this slice holds, and all must continue from the same.
            self._client.attend(server.socket, server.pump)
            return None
        return server

    def _parameters(self) -> Vector:
        """What the servers held when this worker joined."""
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
