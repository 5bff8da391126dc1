"""One connection of a worker to a server. Runs on workers, and on executors that host slices."""

from __future__ import annotations

import secrets
import socket as sockets
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy.typing as npt
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.addresses import connection_error, folder_of, is_file, is_refused, needs_ipv6
from keraunos.exchange.security import Credentials, arm_client
from keraunos.exchange.silence import LOOK_SECONDS
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Kind, Message, WireError, decode

_LINGER_MS = 5000
# For how long a worker waits for a server that is there but silent, unless its job says otherwise.
PATIENCE_SECONDS = 300.0
# For how long a worker that has never heard anything tries where the system says that there is no way.
_UNREACHED_SECONDS = 30.0
# A connection of which nothing is heard, not even the other side's network, is made anew.
_BEAT_MS = 2000
_SILENT_MS = 10_000


class Link:
    """A connected DEALER socket: a context manager that belongs to one thread.

    Attributes:
        tally: where the bytes are counted; its own until somebody gives it another.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], connection: Mapping[str, Any], rank: int, incarnation: int
    ) -> None:
        self.address = str(connection["address"])
        self._context = context
        # Whether the server listens by IPv6 only; its name may stand for both kinds.
        self._ipv6 = bool(connection.get("ipv6"))
        self._credentials = Credentials(**connection["credentials"])
        self._key = self._credentials.seal_key
        self._rank = rank
        self._incarnation = incarnation
        self._stack = ExitStack()
        self.patience = PATIENCE_SECONDS
        self.tally = Tally()
        self._heard = False
        # Whether sending ends at once where nobody listens; a slice's server may be started again elsewhere.
        self.ends_with_server = False
        # The first byte of a name may not be 0, which ZeroMQ keeps for those that it gives itself.
        self.name = b"k" + secrets.token_bytes(15)

    def __enter__(self) -> Self:
        with self._stack:
            self.socket: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.DEALER))
            # The server knows this worker by a name that outlives the connection, and that nobody else has.
            self.socket.routing_id = self.name
            self.socket.heartbeat_ivl = _BEAT_MS
            self.socket.heartbeat_timeout = _SILENT_MS
            self.socket.linger = _LINGER_MS
            self.socket.sndtimeo = int(LOOK_SECONDS * 1000)
            self.socket.rcvhwm = 0
            self.socket.maxmsgsize = CHUNK_BYTES + MAX_BODY_BYTES
            arm_client(self.socket, self._credentials)
            if is_file(self.address):
                folder_of(self.address)
            else:
                self.socket.ipv6 = self._ipv6 or needs_ipv6(self.address)
            self.socket.connect(self.address)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def send(
        self,
        kind: Kind,
        round_: int = 0,
        offset: int = 0,
        body: Mapping[str, Any] | None = None,
        payload: npt.NDArray[Any] | memoryview | None = None,
        number: int = 0,
    ) -> None:
        """Send a message as this rank; a payload must stay as it is until the server has answered."""
        message = Message(kind, self._rank, self._incarnation, round_, offset, body or {}, payload, number)
        frames, waited = message.encode(self._key), 0.0
        while True:
            try:
                self.socket.send_multipart(frames, copy=payload is None)
            except zmq.Again:
                waited += LOOK_SECONDS
            else:
                header, said = frames[0], frames[1]
                self.tally.bytes_sent += len(header) + len(said) + (0 if payload is None else payload.nbytes)
                return
            if self.ends_with_server:
                self.check_there()
            if waited >= self.patience:
                raise ExchangeError(
                    f"Nothing was taken by the server at {self.address} for {waited:.0f} s (driverPatience); it stands "
                    "still, or the network between it and this worker does."
                )

    def check_there(self, silent: float = 0.0) -> None:
        """Raise where nobody listens at the server's address; or, if nothing was ever heard, where no way leads there.

        `silent` is for how many seconds nothing was heard.
        """
        error = connection_error(self.address)
        if self._heard and is_refused(error):
            raise ExchangeError(
                f"The server at {self.address} has ended: connections to it are refused. Look for the reason in the "
                "driver's log, or in that of the executor that hosted it."
            )
        if not self._heard and error is not None and (is_refused(error) or silent >= _UNREACHED_SECONDS):
            raise ExchangeError(
                f"The server of this fit at {self.address} could not be reached from {sockets.gethostname()}: {error}. "
                "See that the driver runs, and that a firewall or NAT lets executors connect to that port of "
                "spark.driver.host; serverPorts confines the ports."
            )

    def receive(self) -> Message | None:
        """The next message that is here."""
        try:
            frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        self.tally.bytes_received += sum(map(len, frames))
        try:
            message = decode([frame.buffer for frame in frames], self._key)
        except WireError as error:
            raise ExchangeError(f"The server at {self.address} sent something that is no message: {error}.") from error
        self._heard = True
        return message
