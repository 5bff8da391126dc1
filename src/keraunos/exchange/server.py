"""Sockets and a thread around the server's state. Runs on the driver.

`Server` is a context manager: inside it the server is bound and answers; outside it thread, sockets, port and shared
memory are gone. What workers report is read from `events` by the thread that follows the fit.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange import security
from keraunos.exchange.server_state import Action, Event, Offer, Send, ServerState
from keraunos.exchange.shared_memory import SharedVector, host_mark
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Kind, Message, WireError, chunks, decode
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout, Vector

logger = logging.getLogger(__name__)

ALIVE_EVERY_SECONDS = 2


class Server:
    """The parameter server of one job, bound to `host` on a free port."""

    def __init__(
        self,
        plan: ExchangePlan,
        workers: int,
        layout: Layout,
        parameters: Vector,
        *,
        host: str = "127.0.0.1",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.host = host
        self._clock = clock
        self._mark = host_mark()
        self._credentials = security.Credentials.fresh(host)
        self._stack = ExitStack()
        self._regions: dict[int, SharedVector] = {}
        self._results: dict[int, SharedVector] = {}
        self._buffers: dict[int, Vector] = {}
        self._clients: dict[int, bytes] = {}
        self._shared: set[int] = set()
        self._commands: queue.SimpleQueue[Callable[[], Iterable[Action]] | None] = queue.SimpleQueue()
        result = self._common_result(plan, layout)
        center = result if plan.synchronous and plan.send != "gradients" else layout.empty()
        np.copyto(center, parameters)
        self.state = ServerState(
            plan, workers, layout, center, result if plan.synchronous else center, self._buffers.__getitem__
        )
        self._thread = threading.Thread(target=self._serve, name="keraunos-server", daemon=True)

    def __enter__(self) -> Self:
        with self._stack:
            context = self._stack.enter_context(zmq.Context())
            self._socket: zmq.Socket[bytes] = self._stack.enter_context(context.socket(zmq.ROUTER))
            authenticator = security.guard_server(self._socket, self._credentials)
            self._stack.callback(authenticator.stop)
            self._socket.linger = 1000
            self._socket.sndhwm = 0
            self._socket.maxmsgsize = CHUNK_BYTES + MAX_BODY_BYTES
            self._port = self._socket.bind_to_random_port(f"tcp://{self.host}")
            self._bell: zmq.Socket[bytes] = self._stack.enter_context(context.socket(zmq.PAIR))
            self._bell.bind("inproc://bell")
            self._ringer: zmq.Socket[bytes] = self._stack.enter_context(context.socket(zmq.PAIR))
            self._ringer.connect("inproc://bell")
            self._thread.start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._commands.put(None)
        self._ringer.send(b"")
        self._thread.join()
        self._stack.close()
        self._buffers.clear()
        for region in (*self._regions.values(), *self._results.values()):
            region.close()

    @property
    def connection(self) -> dict[str, Any]:
        """All that a worker needs to connect, as plain data; it holds the job's secrets."""
        return {"address": f"tcp://{self.host}:{self._port}", "credentials": self._credentials.for_client()}

    @property
    def uploaded(self) -> Vector:
        """The parameters that a worker sent last."""
        return self.state.uploaded

    @property
    def parameters(self) -> Vector:
        """The parameters that the server holds."""
        return self.state.parameters

    def tell_at_start(self, facts: Mapping[str, Any]) -> None:
        """What every worker is told with START; set before the first one is ready."""
        self.state.start_facts = dict(facts)

    def start(self) -> None:
        """Let a synchronous plan's rounds begin."""
        self._command(self.state.start)

    def go(self, epoch: int, *, learning_rate: float | None, last: bool) -> None:
        """Tell the workers to go on after an epoch, or that it was the last."""
        self._command(lambda: self.state.go(epoch, learning_rate, last))

    def stop(self, reason: str) -> None:
        """End the exchange; every worker that is waiting or comes back is told why."""
        self._command(lambda: self.state.stop(reason))

    def _command(self, command: Callable[[], Iterable[Action]]) -> None:
        if not self._thread.is_alive():
            raise ExchangeError("the parameter server has ended")
        self._commands.put(command)
        self._ringer.send(b"")

    def _common_result(self, plan: ExchangePlan, layout: Layout) -> Vector:
        if not plan.synchronous or self._mark is None:
            return layout.empty()
        self._results[-1] = SharedVector.create(layout.size, layout.dtype)
        return self._results[-1].vector

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        next_sign = self._clock()
        while True:
            ready = dict(poller.poll(ALIVE_EVERY_SECONDS * 1000))
            if self._clock() >= next_sign:
                next_sign = self._clock() + ALIVE_EVERY_SECONDS
                self._act(self.state.alive())
            if self._bell in ready:
                self._bell.recv()
                command = self._commands.get()
                if command is None:
                    return
                self._act(command())
            if self._socket in ready:
                self._receive()

    def _receive(self) -> None:
        while True:
            try:
                client, *frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            try:
                message = decode([frame.buffer for frame in frames])
            except WireError as error:
                self.state.dropped += 1
                logger.debug("dropped a malformed message: %s", error)
                continue
            if message.kind is Kind.HELLO and self._newest(message):
                self._clients[message.rank] = client.bytes
            if self._clients.get(message.rank) == client.bytes:
                (self._shared.add if message.body.get("shared") else self._shared.discard)(message.rank)
            self._act(self.state.receive(message))

    def _newest(self, message: Message) -> bool:
        known = self.state.members.get(message.rank)
        return known is None or message.incarnation >= known.incarnation

    def _act(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Event):
                self.events.put(action)
            elif isinstance(action, Offer):
                self._make_buffers(action.rank, action.length)
            else:
                self._send(action)

    def _make_buffers(self, rank: int, length: int) -> None:
        layout = self.state.layout
        if self._mark is None or self.state.members[rank].mark != self._mark:
            self._buffers[rank] = np.empty(length, dtype=layout.dtype)
            return
        self._regions[rank] = SharedVector.create(length, layout.dtype)
        self._buffers[rank] = self._regions[rank].vector
        if not self.state.plan.synchronous:
            self._results[rank] = SharedVector.create(layout.size, layout.dtype)

    def _send(self, action: Send) -> None:
        client = self._clients.get(action.rank)
        if client is None:
            return
        message = action.message
        if message.kind is Kind.START and action.rank in self._regions:
            result = self._results[-1 if self.state.plan.synchronous else action.rank]
            offers = {"upload": self._regions[action.rank].offer, "result": result.offer}
            message = replace(message, body={**message.body, "shared": offers})
        if action.result is None:
            self._socket.send_multipart([client, *message.encode()])
        elif action.rank in self._shared:
            if not self.state.plan.synchronous:
                np.copyto(self._results[action.rank].vector, action.result)
            self._socket.send_multipart([client, *message.encode()])
        else:
            self._send_vector(client, message, action.result)

    def _send_vector(self, client: bytes, message: Message, vector: Vector) -> None:
        # Under a synchronous plan nobody writes to the vector before everyone has read it, so it is not copied.
        copy = not self.state.plan.synchronous
        for start, stop in chunks(vector.size, vector.itemsize):
            chunk = replace(message, offset=start, payload=vector[start:stop])
            self._socket.send_multipart([client, *chunk.encode()], copy=copy)
