"""A transport without servers: workers send their contributions to each other over TCP, and each applies the rule.

A second implementation of `Transport`, as simple as one can be: every worker keeps all of the parameters, gets the
contributions of all others, and applies the plan's rule to them in the order of their ranks.
"""

import json
import secrets
import socket
import struct
import time
from functools import partial

import numpy as np

from keraunos.errors import ExchangeError
from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import SliceAddress
from keraunos.exchange.messages import Remove, Upload
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.rules.rule import Sent
from keraunos.exchange.sharding import Slice
from keraunos.exchange.transports.transport import Transport
from keraunos.exchange.waits import Wait
from keraunos.exchange.wire import unpack_typed
from keraunos.job.saving import SavePoints

HOME = f"{__name__}:SocketTransport"
_LENGTHS = struct.Struct("!IQ")
# For how long a worker that has lost a peer waits for the driver, who knows why, to stop the job.
DRIVER_SECONDS = 10.0


class Peer:
    """A connection to another worker. Nothing here blocks."""

    def __init__(self, connection):
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.ended = False
        self._to_send = bytearray()
        self._read = bytearray()

    @property
    def is_flushed(self):
        return self.ended or not self._to_send

    def say(self, header, payload=b""):
        text = json.dumps(header).encode()
        self._to_send += _LENGTHS.pack(len(text), len(payload)) + text + payload
        self.move()

    def move(self):
        """Send and receive what can be at once; whether there was something."""
        before = len(self._to_send), len(self._read)
        try:
            while self._to_send:
                del self._to_send[: self.socket.send(self._to_send)]
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
        try:
            while not self.ended and (piece := self.socket.recv(1 << 20)):
                self._read += piece
            self.ended = True
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
        return before != (len(self._to_send), len(self._read))

    def heard(self):
        """What has arrived whole: headers and payloads."""
        while len(self._read) >= _LENGTHS.size:
            text, payload = _LENGTHS.unpack_from(self._read)
            end = _LENGTHS.size + text + payload
            if len(self._read) < end:
                return
            header = json.loads(self._read[_LENGTHS.size : _LENGTHS.size + text])
            body = bytes(self._read[end - payload : end])
            del self._read[:end]
            yield header, body


class SocketTransport(Transport):
    """See the module's docstring."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._peers = {}
        self._strangers = []
        self._said = {}
        self._left = {}
        self._empty = False
        self._applied = 0
        self._round = 0
        self._contributed = {}

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self._secret = secrets.token_hex(16)
        return self

    def __exit__(self, kind, error, trace):
        self._client.dismiss()
        for each in (*self._peers.values(), *self._strangers):
            each.socket.close()
        self._listener.close()

    @property
    def address(self):
        return SliceAddress(f"127.0.0.1:{self._listener.getsockname()[1]}", {"secret": self._secret})

    def open(self, start, learner, parts):
        del parts
        self._rank = self._client.rank
        self._on_host = learner.on_host
        whole = Slice(learner.layout, 0, learner.layout.size)
        self._rule = make_rule(self._plan, whole, self._workers)
        self._parameters = learner.read()
        self._result = self._parameters if self._rule.gives_parameters else learner.layout.empty()
        self._ranks = {place.host_rank for place in start.slices}
        (self._own,) = [place for place in start.slices if place.host_rank == self._rank]
        self.saves = SavePoints.from_json(start.saves)
        if start.kept is not None:
            self._go_on_from(start.kept)
        self._client.attend(self._listener, self._accept)
        for place in start.slices:
            if place.host_rank < self._rank:
                host, _, port = place.address.partition(":")
                peer = self._peers[place.host_rank] = Peer(socket.create_connection((host, int(port)), timeout=10))
                peer.say({"rank": self._rank, "secret": place.credentials["secret"]})
                self._client.attend(peer.socket, partial(self._listen, place.host_rank))
        self._client.on(Remove, lambda _, remove: self._left.setdefault(remove.rank, self._round))
        if not self._plan.applies_on_workers:
            self._client.on(Upload, lambda _, upload: self._upload(last=upload.last))

    def join(self, *, wants_parameters):
        self._client.wait_until(lambda: self._peers.keys() >= self._ranks - {self._rank} or None, Wait.SLICES)
        return self._round, self._parameters.copy() if wants_parameters else None

    def contribute(self, round_, values, denominators, rows, squared_norm=None):
        vector = np.array(self._on_host(values))
        self._share(round_, (vector, tuple(denominators), rows, squared_norm))

    def pass_round(self, round_):
        self._share(round_, None)

    def collect(self, round_):
        deadline = None

        def here():
            nonlocal deadline
            missing = [rank for rank in self._ranks if not self._has_said(rank, round_)]
            lost = [rank for rank in missing if rank != self._rank and self._peers[rank].ended]
            if lost:
                deadline = deadline or time.monotonic() + DRIVER_SECONDS
                if time.monotonic() > deadline:
                    raise ExchangeError(f"The connection to worker {lost[0]} was lost in round {round_}.")
            return None if missing else True

        self._client.wait_until(here, Wait.RESULT)
        if round_ >= self._round:
            self._apply(round_)
        return self._result

    @property
    def empty(self):
        return self._empty

    def leave(self):
        for peer in self._peers.values():
            peer.say({"leaves": self._round})
        self._client.wait_until(lambda: all(peer.is_flushed for peer in self._peers.values()) or None, Wait.RESULT)

    @property
    def serves(self):
        return True

    @property
    def contributed(self):
        return self._contributed

    def _share(self, round_, sent):
        self._about_to_share()
        self._said.setdefault(round_, {})[self._rank] = sent
        header, payload = {"round": round_}, b""
        if sent is not None:
            vector, denominators, rows, norm = sent
            header |= {"denominators": denominators, "rows": rows, "norm": norm}
            payload = vector.tobytes()
        for peer in self._peers.values():
            peer.say(header, payload)

    def _has_said(self, rank, round_):
        return rank in self._said.get(round_, {}) or round_ >= self._left.get(rank, round_ + 1)

    def _apply(self, round_):
        said = self._said.pop(round_, {})
        sent = [
            Sent(*said[rank][:3], squared_norm=said[rank][3], rank=rank)
            for rank in sorted(said)
            if said[rank] is not None
        ]
        if sent:
            norm = self._rule.squared_norm(sent) if self._rule.needs_norm else None
            self._rule.apply(sent, self._parameters, self._result, squared_norm=norm)
        elif not self._rule.gives_parameters and not self._plan.applies_on_workers:
            np.copyto(self._result, self._parameters)
        self._empty = not sent and self._plan.applies_on_workers
        self._applied += len(sent)
        for each in sent:
            self._contributed[each.rank] = self._contributed.get(each.rank, 0) + each.rows
        self._round = round_ + 1
        if self.saves.due(self._round):
            self._client.save_slice(self._round, self._kept())

    def _kept(self):
        """All of the parameters, though this worker answers for a part of them: nobody else may be asked later."""
        parameters = self._parameters[: 0 if self._plan.applies_on_workers else None].copy()
        rounds = dict.fromkeys(self._ranks, self._round)
        return Kept(rounds, dict(self._contributed), self._applied, [parameters, *self._rule.state()])

    def _go_on_from(self, kept):
        parameters, *rule = unpack_typed(kept.arrays, self._client.fetch("slice", 0, kept.size))
        self._round = kept.facts.rounds[self._rank]
        self._contributed, self._applied = dict(kept.facts.contributed), kept.facts.applied
        if parameters.size:
            self._parameters[:] = parameters
        if rule:
            self._rule.restore(rule)

    def _upload(self, *, last):
        if last:
            self._rule.finish(self._parameters)
        self._client.send_parameters(self._parameters[self._own.start : self._own.stop], self._own.start)

    def _accept(self):
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            connection = None
        else:
            self._strangers.append(Peer(connection))
        for peer in list(self._strangers):
            peer.move()
            said = next(peer.heard(), None)
            if said is not None and said[0]["secret"] == self._secret:
                self._strangers.remove(peer)
                self._peers[said[0]["rank"]] = peer
                self._client.attend(peer.socket, partial(self._listen, said[0]["rank"]))
        return connection is not None

    def _listen(self, rank):
        peer = self._peers[rank]
        some = not peer.ended and peer.move()
        for header, payload in peer.heard():
            some = True
            if "leaves" in header:
                self._left[rank] = header["leaves"]
            else:
                self._said.setdefault(header["round"], {})[rank] = self._taken(header, payload)
        return some

    def _taken(self, header, payload):
        if "rows" not in header:
            return None
        vector = np.frombuffer(payload, self._parameters.dtype)
        return vector, tuple(header["denominators"]), header["rows"], header["norm"]
