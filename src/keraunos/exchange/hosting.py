"""A slice on a worker or in a task of its own. Runs on workers and on executors.

The host joins the job as a member, tells the coordinator where its slice can be reached, learns with START which
slice it is, and gives the slice's parameters back when the driver asks for them.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from keraunos.exchange import security
from keraunos.exchange.addresses import folder_of, is_file, own_address_towards
from keraunos.exchange.client import Client
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.endpoint import Endpoint, Place
from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import SliceAddress
from keraunos.exchange.messages import Remove, Save, Start, TotalNorm, Upload
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.waits import Wait
from keraunos.exchange.wire import unpack_typed
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import FIRST_SERVER
from keraunos.job.saving import SavePoints
from keraunos.learners.registry import use_backend
from keraunos.parameters import Layout, Vector


class SliceHost:
    """A place for one slice: bound at once, served from `begin` on.

    Attributes:
        contributed: how many rows of each rank the slice has applied.
        saves: before which rounds the slice of a synchronous plan is saved.
    """

    def __init__(self, client: Client, plan: ExchangePlan, workers: int, ports: tuple[int, int] | None = None) -> None:
        self._client = client
        self._plan = plan
        self._workers = workers
        self._ports = ports
        self._stack = ExitStack()
        self._ended = threading.Event()
        self._bells: Doorbells | None = None
        self.contributed: Mapping[int, int] = {}
        self.saves = SavePoints()
        self._to_save: queue.SimpleQueue[tuple[int, Kept]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        with self._stack:
            credentials = security.Credentials(**self._client.connection["credentials"]).for_slice()
            context = self._stack.enter_context(security.guarded_context(credentials)).context
            place = _place_beside(str(self._client.connection["address"]), self._ports)
            self._endpoint = self._stack.enter_context(Endpoint(context, place, credentials))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def address(self) -> SliceAddress:
        """Where the slice can be reached."""
        connection = self._endpoint.connection
        return SliceAddress(connection["address"], connection["credentials"])

    def begin(self, start: Start, part: Slice, parameters: Vector | None, *, thread: bool) -> SliceServer:
        """Serve the slice that START gave to this member, in a thread or by whoever pumps."""
        common = self._common(start, part)
        bells = None if common is None or thread else self.bells(start)
        server = SliceServer(
            self._plan,
            part,
            self._workers,
            parameters,
            self._endpoint,
            ranks=list(start.rows) if self._plan.waits else (),
            alone=len(start.slices) == 1,
            common=common,
            bells=bells,
            tell_norm=self._client.tell_norm,
            on_save=lambda round_, kept: self._to_save.put((round_, kept)),
        )
        self._stack.callback(server.close)
        self._go_on(server, start)
        self.contributed = server.state.contributed
        self._client.attend(None, self._send_saved)
        self._hear(server)
        if thread:
            # Whoever looks without sleeping would keep the interpreter, and the core, from that thread.
            self._client.spins = False
            serving = threading.Thread(target=server.serve, args=(self._ended,), name="keraunos-slice", daemon=True)
            serving.start()
            self._stack.callback(serving.join)
            self._stack.callback(self._ended.set)
            self._client.attend(None, lambda: _see_to(server))
        return server

    def _hear(self, server: SliceServer) -> None:
        """Do what the coordinator asks of the slice, as far as it is not asked of the worker that hosts it."""
        client, plan = self._client, self._plan
        if client.rank >= FIRST_SERVER or not plan.synchronous:
            # A worker that trains in rounds has those before which to save in common with its slice.
            client.on(Save, lambda message, _: self._save(server, message.round))
        if not plan.applies_on_workers:
            # Otherwise each worker has all of the parameters, and sends them itself.
            client.on(Upload, lambda _, upload: self._upload(server, last=upload.last))
        client.on(Remove, lambda _, remove: _remove(server, remove))
        client.on(TotalNorm, lambda message, norm: _settle_norm(server, message.round, norm.value))

    def _save(self, server: SliceServer, round_: int) -> None:
        """Save what the slice is before a round that is announced; or, with 0, what it is now."""
        if round_ and round_ <= server.state.open_round + 1:
            self._client.miss(round_)
            return

        def take() -> list[Any]:
            if round_:
                server.state.saves.announce(round_)
            else:
                self._to_save.put((0, server.keep()))
            return []

        server.command(take)

    def bells(self, start: Start) -> Doorbells | None:
        """How the workers of this host reach each other without a socket, where they can; opened once."""
        if self._bells is None:
            ranks = [each.host_rank for each in start.slices if each.host_rank is not None]
            self._bells = Doorbells.open(start.bells, ranks)
            if self._bells is not None:
                self._stack.callback(self._bells.close)
        return self._bells

    def _go_on(self, server: SliceServer, start: Start) -> None:
        """Know what is to be saved, and be what the slice was when the training was left."""
        self.saves = server.state.saves = SavePoints.from_json(start.saves)
        kept = start.kept
        if kept is not None:
            arrays = unpack_typed(kept.arrays, self._client.fetch("slice", 0, kept.size))
            server.go_on_from(replace(kept.facts, arrays=arrays))

    def _send_saved(self) -> bool:
        some = False
        while not self._to_save.empty():
            some = True
            self._client.save_slice(*self._to_save.get())
        return some

    def _upload(self, server: SliceServer, *, last: bool) -> None:
        if last:
            server.rule.finish(server.parameters)
        self._client.send_parameters(server.parameters, server.part.start)

    def _common(self, start: Start, part: Slice) -> Vector | None:
        offer = start.common
        region = SharedVector.open(offer) if offer and self._client.mark is not None else None
        if region is None:
            return None
        self._stack.callback(region.close)
        return region.vector[part.start : part.stop]


def slice_of(start: Start, rank: int, layout: Layout) -> Slice:
    """The slice that START gave to a host."""
    (found,) = [each for each in start.slices if each.host_rank == rank]
    return Slice(layout, found.start, found.stop)


def host_slice(connection: Mapping[str, Any], index: int, incarnation: int, versions: Mapping[str, str]) -> None:
    """Host one slice in this process, from joining the job to its end."""
    with Client(connection, FIRST_SERVER + index, incarnation) as client:
        sizes = client.hello(versions)
        about = json.loads(bytes(client.fetch("exchange", 0, sizes["exchange"])))
        client.patience = float(about["patience"])
        plan, layout = ExchangePlan.from_json(about["plan"]), Layout.from_json(about["layout"])
        ports = tuple(about["ports"]) if about["ports"] else None
        if plan.rule.is_optimizer:
            use_backend(about["backend"])
        with SliceHost(client, plan, int(about["workers"]), ports) as host:
            start = client.ready(None, host.address)
            part = slice_of(start, client.rank, layout)
            server = host.begin(start, part, _fetched(client, part, plan), thread=False)
            client.attend(server.socket, server.pump)
            client.wait_until(lambda: client.released or None, Wait.END)
            counted = dict(host.contributed)
        client.bye(counted)


def _place_beside(address: str, ports: tuple[int, int] | None) -> Place:
    """Where a member of the job at `address` may listen: beside its socket file, or on the way to the driver."""
    if is_file(address):
        return Place(folder_of(address))
    return Place(None, own_address_towards(address), ports=ports)


def _fetched(client: Client, part: Slice, plan: ExchangePlan) -> Vector | None:
    if plan.applies_on_workers:
        return None
    size = np.dtype(part.layout.dtype).itemsize
    return np.frombuffer(client.fetch("parameters", part.start * size, part.stop * size), dtype=part.layout.dtype)


def _see_to(server: SliceServer) -> bool:
    """What ended the thread that serves ends the worker, too."""
    if server.failure is not None:
        raise server.failure
    return False


def _remove(server: SliceServer, remove: Remove) -> None:
    state, rank = server.state, remove.rank
    server.command(lambda: state.exclude(rank) if remove.for_good else state.remove(rank))


def _settle_norm(server: SliceServer, round_: int, value: float) -> None:
    server.command(lambda: server.state.total_norm(round_, value))
