"""What a hostile member of a job may send: its frames, damaged in every way, from connections of its own.

It knows the job's secrets and has heard what the job's workers say. What it may not do is claim a rank as a newer
incarnation: to the server that is the rank's own worker, started again.
"""

import contextlib
import random
import socket as sockets
import struct
from collections import deque
from urllib.parse import urlsplit

import zmq

from keraunos.exchange.link import Link
from keraunos.exchange.wire import CHUNK_BYTES, MAX_BODY_BYTES, Kind, Message, decode

_TOO_LARGE = CHUNK_BYTES + MAX_BODY_BYTES + 1
_KEPT = 500
_ENTRANCES = (Kind.HELLO, Kind.JOIN)


class Recorder:
    """Keeps the frames that the job's own workers send, while it is installed."""

    def __init__(self, monkeypatch):
        self.frames = deque(maxlen=_KEPT)
        send = Link.send

        def recording(link, kind, round_=0, offset=0, body=None, payload=None, number=0):
            message = Message(kind, link._rank, link._incarnation, round_, offset, body or {}, payload, number)
            self.frames.append([bytes(frame) for frame in message.encode(link._key)])
            send(link, kind, round_, offset, body, payload, number)

        monkeypatch.setattr(Link, "send", recording)


class Mutator:
    """Endless messages that no server may take, made from recorded ones."""

    def __init__(self, recorded, key, incarnation, seed=0):
        self._recorded = recorded
        self._key = key
        self._incarnation = incarnation
        self._random = random.Random(seed)
        self._ways = (
            self._replayed,
            self._flipped,
            self._truncated,
            self._shuffled,
            self._padded,
            self._garbage,
            self._sealed_again,
        )

    def next(self):
        """The frames of one message."""
        frames = list(self._random.choice(self._recorded))
        return self._random.choice(self._ways)(frames)

    def _replayed(self, frames):
        return frames

    def _flipped(self, frames):
        which = self._random.randrange(len(frames))
        damaged = bytearray(frames[which])
        for _ in range(self._random.randint(1, 8)):
            if damaged:
                damaged[self._random.randrange(len(damaged))] ^= self._random.randint(1, 255)
        frames[which] = bytes(damaged)
        return frames

    def _truncated(self, frames):
        which = self._random.randrange(len(frames))
        frames[which] = frames[which][: self._random.randint(0, len(frames[which]))]
        return frames[: self._random.randint(1, len(frames))]

    def _shuffled(self, frames):
        self._random.shuffle(frames)
        return frames

    def _padded(self, frames):
        return frames + [b"x" * self._random.randint(0, 50)] * self._random.choice([1, 2, 5, 50])

    def _garbage(self, frames):
        return [self._random.randbytes(self._random.randint(0, 80)) for _ in range(self._random.randint(1, 5))]

    def _sealed_again(self, frames):
        """A header and body that never were, with the right seal."""
        kind = self._random.choice(list(Kind))
        newest = self._incarnation if kind in _ENTRANCES else 1 << 62
        counter = self._random.choice([0, 1, 2, 3, 1 << 18, 1 << 40, 1 << 62])
        body = self._random.choice(
            [
                {},
                {"rows": 1, "denominators": [1.0]},
                {"rows": "x", "denominators": None},
                {"parts": 64, "host": "x", "mark": None, "wants_parameters": True},
                {"shared": True, "rows": 10**30, "denominators": [1e308]},
                {"for": 0, "size": 1 << 39, "arrays": []},
                {"name": "parameters"},
            ]
        )
        message = Message(
            kind,
            self._random.choice([0, 1, 2, 1 << 19, 1 << 20]),
            # Not 1: that is the marker's own.
            min(newest, self._random.choice([0, 2, 3, 1 << 62])),
            counter,
            self._random.choice([0, 1, 4, counter]),
            body,
            self._random.choice([None, memoryview(self._random.randbytes(64))]),
        )
        return message.encode(self._key)


class Hostile:
    """One connection with the job's secrets; a context manager that belongs to one thread."""

    def __init__(self, context, connection, incarnation):
        self._link = Link(context, connection, 0, incarnation)

    def __enter__(self):
        self._link.__enter__()
        return self

    def __exit__(self, *_):
        self._link.__exit__(None, None, None)

    def send(self, frames):
        """Send a message as it is, and read what there is to read."""
        self._link.socket.send_multipart(frames)
        while self._link.socket.poll(0):
            self._link.socket.recv_multipart()

    def all_taken(self, timeout_ms=60_000):
        """Wait until the server has read everything that was sent: a word that it answers, behind all others."""
        marker = Message(Kind.PASS, 0, 1, body={"marker": True})
        self._link.socket.send_multipart(marker.encode(self._link._key))
        while self._link.socket.poll(timeout_ms):
            answer = decode(self._link.socket.recv_multipart(), self._link._key)
            if answer.incarnation == marker.incarnation:
                return True
        return False


class Raw:
    """ZeroMQ's protocol by hand over a plain connection, to say what a well-behaved library does not."""

    def __init__(self, address, greeting):
        parts = urlsplit(address)
        self._connection = sockets.create_connection((parts.hostname, parts.port), timeout=20)
        self._heard = b""
        self.say(greeting)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def say(self, data):
        """Send bytes; the server may have ended the connection already."""
        with contextlib.suppress(ConnectionError):
            self._connection.sendall(data)

    def command(self, name, body):
        """Send one of the handshake's commands."""
        content = bytes([len(name)]) + name + body
        self.say(struct.pack("!BB", 4, len(content)) + content)

    def wait_for(self, word):
        """Read until the server has said `word`; whether it did before it ended the connection."""
        while word not in self._heard:
            try:
                piece = self._connection.recv(4096)
            except ConnectionError:
                return False
            if not piece:
                return False
            self._heard += piece
        return True

    def is_ended(self):
        """Wait until the server ends the connection; whether it ever said more than its part of a handshake."""
        return not self.wait_for(b"WELCOME")


def send_too_large(context, connection):
    """One message that is larger than any may be, from a holder of the secrets; whether it ended the connection."""
    with Link(context, connection, 0, 1) as link:
        link.socket.linger = 0
        with link.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
            link.socket.send_multipart([b"x" * 10, b"x" * 10, b"x" * _TOO_LARGE])
            ended = bool(monitor.poll(20_000))
            link.socket.disable_monitor()
        return ended


def knock(address, number):
    """One connection without the key, in one of several ways; whether it was turned away."""
    ways = (_without_a_mechanism, _with_a_password, _with_garbage, _with_a_size_beyond_all)
    return ways[number % len(ways)](address)


def _without_a_mechanism(address):
    with Raw(address, _greeting(b"NULL")) as raw:
        raw.command(b"READY", b"\x0bSocket-Type" + struct.pack("!I", 6) + b"DEALER")
        return raw.is_ended()


def _with_a_password(address):
    with Raw(address, _greeting(b"PLAIN")) as raw:
        raw.command(b"HELLO", b"\6worker" + bytes([64]) + b"0" * 64)
        return raw.is_ended()


def _with_garbage(address):
    with Raw(address, b"GET / HTTP/1.1\r\n\r\n" + random.Random(1).randbytes(200)) as raw:
        return raw.is_ended()


def _with_a_size_beyond_all(address):
    with Raw(address, _greeting(b"CURVE")) as raw:
        raw.say(struct.pack("!BQ", 6, 1 << 62) + b"x" * 100)
        return raw.is_ended()


def _greeting(mechanism):
    return b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
