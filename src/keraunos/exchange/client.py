"""A worker's side of the exchange. Runs on workers, in the thread that trains.

`Client` is a context manager and belongs to one thread. Every wait has a deadline, and ends at once when the server
says stop. On the server's own host vectors are read and written in shared memory and only short messages travel.
"""

from __future__ import annotations

import contextlib
import os
import socket as sockets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.security import Credentials, arm_client
from keraunos.exchange.shared_memory import SharedVector, host_mark
from keraunos.exchange.wire import SUPERSEDED, Kind, Message, WireError, chunks, decode, pack_arrays
from keraunos.parameters import Layout, Vector

# A waiting worker first looks again and again, giving its core to whoever wants it, because waking an idle core
# costs more than a whole round of a small model; then it sleeps until something arrives.
SPIN_SECONDS = 0.02
SERVER_SILENCE_SECONDS = 60.0


class Stopped(ExchangeError):  # noqa: N818 - being stopped is no error
    """The driver ended the job; there is nothing left to do or to report."""


class Superseded(ExchangeError):  # noqa: N818 - says what happened to this worker
    """A newer incarnation of this rank has taken over."""


@dataclass(frozen=True)
class Control:
    """What the driver decided after an epoch."""

    epoch: int
    learning_rate: float | None
    last: bool


class Client:
    """One rank's connection to the server."""

    def __init__(
        self,
        connection: Mapping[str, Any],
        rank: int,
        incarnation: int,
        *,
        share_memory: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = str(connection["address"])
        self._credentials = Credentials(**connection["credentials"])
        self._rank = rank
        self._incarnation = incarnation
        self._mark = host_mark() if share_memory else None
        self._clock = clock
        self._stack = ExitStack()
        self._upload: SharedVector | None = None
        self._download: SharedVector | None = None
        self._scratch: Vector = np.empty(0)
        self.layout: Layout | None = None
        self.control: Control | None = None

    def __enter__(self) -> Self:
        with self._stack:
            context = self._stack.enter_context(zmq.Context())
            self._socket: zmq.Socket[bytes] = self._stack.enter_context(context.socket(zmq.DEALER))
            self._socket.linger = 2000
            arm_client(self._socket, self._credentials)
            self._socket.connect(self._address)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        for region in (self._upload, self._download):
            if region is not None:
                region.close()

    def hello(self, facts: Mapping[str, Any]) -> None:
        """Join the job."""
        self._send(Kind.HELLO, body={**facts, "host": sockets.gethostname(), "mark": self._mark})
        self._wait(Kind.WELCOME)

    def ready(self, layout: Layout, parts: int, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Say that the rows are read and the model is built; the answer comes when training starts."""
        self.layout = layout
        self._scratch = layout.empty()
        self._send(Kind.READY, body={**facts, "parts": parts})
        body = self._wait(Kind.START).body
        offers = body.get("shared")
        if offers and self._mark is not None:
            self._upload, self._download = (SharedVector.open(offers[name]) for name in ("upload", "result"))
        return body

    def first_parameters(self) -> Vector:
        """Where an asynchronous worker starts: what the server holds now. Read it before the next call."""
        return self._result(0)

    def exchange(self, round_: int, values: Vector, denominators: Sequence[float | None], rows: int) -> Vector:
        """Contribute to a round and wait for its result, which is good until the next call."""
        body = {"denominators": list(denominators), "rows": rows}
        if self._shares:
            np.copyto(self._upload_vector[: values.size], values)
            self._send(Kind.PUSH, round_, body=body)
        else:
            for start, stop in chunks(values.size, values.itemsize):
                last = body if stop == values.size else {}
                self._send(Kind.PUSH, round_, start, last, np.ascontiguousarray(values[start:stop]))
        return self._result(round_)

    def pass_round(self, round_: int) -> Vector:
        """Take part in a round without a contribution and wait for its result, which is good until the next call."""
        self._send(Kind.PASS, round_)
        return self._result(round_)

    def report(self, epoch: int, rows: int, metrics: Sequence[npt.NDArray[np.float64]]) -> None:
        """Tell the driver how far this rank is, and the metrics' state since the last report."""
        shapes, buffer = pack_arrays(metrics)
        self._send(Kind.REPORT, epoch, body={"rows": rows, "shapes": shapes}, payload=buffer)

    def end_epoch(
        self,
        epoch: int,
        rows: int,
        metrics: Sequence[npt.NDArray[np.float64]],
        validation: Sequence[npt.NDArray[np.float64]],
    ) -> None:
        """Tell the driver that an epoch is done: the rest of its metrics, then those of the validation rows."""
        shapes, buffer = pack_arrays([*metrics, *validation])
        body = {"rows": rows, "shapes": shapes, "split": len(metrics)}
        self._send(Kind.EPOCH, epoch, body=body, payload=buffer)

    def wait_for_go(self, epoch: int) -> Control:
        """What the driver decided after that epoch."""
        while self.control is None or self.control.epoch < epoch:
            self._wait(Kind.GO)
        return self.control

    def poll_control(self) -> Control | None:
        """The driver's latest decision, without waiting for one."""
        while (message := self._receive(0)) is not None:
            self._keep(message)
        return self.control

    def send_parameters(self, vector: Vector, body: Mapping[str, Any]) -> None:
        """Send this rank's parameters to the driver."""
        if self._shares:
            np.copyto(self._upload_vector[: vector.size], vector)
            self._send(Kind.PARAMETERS, body={**body, "complete": True})
            return
        for start, stop in chunks(vector.size, vector.itemsize):
            done = {**body, "complete": stop == vector.size}
            self._send(Kind.PARAMETERS, 0, start, done, np.array(vector[start:stop]))

    def failed(self, body: Mapping[str, Any]) -> None:
        """Tell the driver why this worker ends, and wait until it knows; raises where it cannot be told."""
        self._send(Kind.FAILED, body=body)
        with contextlib.suppress(Stopped):
            self._wait(Kind.STOP)

    def bye(self) -> None:
        """Leave the job in good order."""
        self._send(Kind.BYE)

    @property
    def _shares(self) -> bool:
        return self._upload is not None and self._download is not None

    @property
    def _upload_vector(self) -> Vector:
        assert self._upload is not None
        return self._upload.vector

    def _result(self, round_: int) -> Vector:
        message = self._wait(Kind.RESULT, round_)
        if message.payload is None and self._download is not None:
            return self._download.vector
        missing = self._scratch.size
        while True:
            if message.round == round_ and message.payload is not None:
                values = np.frombuffer(message.payload, dtype=self._scratch.dtype)
                self._scratch[message.offset : message.offset + values.size] = values
                missing -= values.size
            if missing <= 0:
                return self._scratch
            message = self._wait(Kind.RESULT, round_)

    def _send(
        self,
        kind: Kind,
        round_: int = 0,
        offset: int = 0,
        body: Mapping[str, Any] | None = None,
        payload: npt.NDArray[Any] | None = None,
    ) -> None:
        fields = dict(body or {})
        if self._shares:
            fields["shared"] = True
        message = Message(kind, self._rank, self._incarnation, round_, offset, fields, payload)
        self._socket.send_multipart(message.encode(), copy=payload is None)

    def _wait(self, kind: Kind, round_: int | None = None) -> Message:
        heard = self._clock()
        spin_until = heard + SPIN_SECONDS
        while True:
            message = self._receive(0 if self._clock() < spin_until else 1000)
            if message is None:
                if self._clock() < spin_until:
                    os.sched_yield()
                elif self._clock() - heard > SERVER_SILENCE_SECONDS:
                    raise ExchangeError(
                        f"Nothing was heard from the parameter server at {self._address} for "
                        f"{SERVER_SILENCE_SECONDS:.0f} s while waiting for {kind.name}; the driver is gone, or the "
                        "network between it and this worker is."
                    )
                continue
            heard = self._clock()
            self._keep(message)
            if message.kind is kind and (round_ is None or message.round >= round_):
                return message

    def _keep(self, message: Message) -> None:
        if message.kind is Kind.STOP:
            reason = str(message.body.get("reason", ""))
            raise Superseded(reason) if reason == SUPERSEDED else Stopped(reason)
        if message.kind is Kind.GO:
            body = message.body
            self.control = Control(message.round, body["learning_rate"], bool(body["last"]))

    def _receive(self, timeout_ms: int) -> Message | None:
        if timeout_ms and not self._socket.poll(timeout_ms):
            return None
        try:
            frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        try:
            return decode([frame.buffer for frame in frames])
        except WireError as error:
            raise ExchangeError(f"The parameter server sent something that is not a message: {error}.") from error
