"""Lets in only those who hold the job's client key. Runs in a thread beside servers that listen on ports.

ZeroMQ asks for every connection, over its authentication protocol (ZAP, RFC 27), whether the key that the client has
proved to hold may enter. pyzmq's own handler for this writes what it is asked into its log, and cannot be closed once
its thread has failed.
"""

from __future__ import annotations

import secrets
import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

import zmq
from zmq.utils import z85

_ADDRESS = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_QUESTION_FRAMES = 7


class KeyCheck:
    """Answers for all servers of one ZeroMQ context; a context manager owns the thread."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], allowed: str) -> None:
        self._context = context
        self._allowed = z85.decode(allowed)
        self._stack = ExitStack()
        self.thread = threading.Thread(target=self._serve, name="keraunos-keys", daemon=True)

    def __enter__(self) -> Self:
        with self._stack:
            self._questions: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.ROUTER))
            self._questions.linger = 0
            self._questions.bind(_ADDRESS)
            self._bell: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.PAIR))
            self._ringer: zmq.Socket[bytes] = self._stack.enter_context(self._context.socket(zmq.PAIR))
            self._ringer.linger = 0
            self._bell.bind("inproc://keys")
            self._ringer.connect("inproc://keys")
            self.thread.start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(zmq.Again):
            self._ringer.send(b"", zmq.NOBLOCK)
        self.thread.join()
        self._stack.close()

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._questions, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        while self._bell not in (ready := dict(poller.poll())):
            if self._questions in ready:
                self._answer()

    def _answer(self) -> None:
        sender, empty, *question = self._questions.recv_multipart()
        if len(question) < _QUESTION_FRAMES or question[0] != _VERSION:
            return
        _, request, _, _, _, mechanism, key = question[:_QUESTION_FRAMES]
        enters = mechanism == b"CURVE" and secrets.compare_digest(key, self._allowed)
        status = (b"200", b"OK", b"worker") if enters else (b"400", b"Not a key of this job", b"")
        self._questions.send_multipart([sender, empty, _VERSION, request, *status, b""])
