"""A worker's side of the parameters: contributions out, results in, over all slices. Runs in the thread that trains.

Each slice has a link of its own; a slice that this worker hosts itself, under a synchronous plan, is spoken to
directly. On a slice's own host vectors are written and read in shared memory and only short messages travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

import numpy as np

from keraunos.errors import ExchangeError
from keraunos.exchange.client import Client, Superseded
from keraunos.exchange.codecs.feedback import Difference, ErrorFeedback
from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.link import Link
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.wire import Kind, Message, chunk_at, chunks
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Layout, Vector


class Slices:
    """All slices of a job, as one vector; a context manager that belongs to the client's thread.

    What `collect` gives is good until the next contribution.
    """

    def __init__(
        self,
        client: Client,
        plan: ExchangePlan,
        layout: Layout,
        parts: int,
        start: Mapping[str, Any],
        *,
        hosted: SliceServer | None = None,
        bells: Doorbells | None = None,
    ) -> None:
        self._client = client
        self._plan = plan
        self._layout = layout
        self._parts = parts
        self._stack = ExitStack()
        self._slices = [_Place(each, layout, plan, parts) for each in start["slices"]]
        self._hosted = hosted
        self._bells = bells if hosted is not None else None
        self._common = self._open(start.get("common"))
        self._whole: Vector = layout.empty() if self._common is None else self._common.vector

    def __enter__(self) -> Self:
        with self._stack:
            for place in self._slices:
                if self._hosted is not None and place.host_rank == self._client.rank:
                    place.server = self._hosted
                else:
                    place.link = self._stack.enter_context(
                        Link(self._client.context, place.connection, self._client.rank, self._client.incarnation)
                    )
                    self._client.attend(place.link.socket, place.listen)
            if self._hosted is not None:
                # Also while this worker waits for something else: the others may need its slice.
                self._client.attend(self._hosted.socket, self._hosted.pump)
            if self._bells is not None:
                self._client.on_sleep = partial(self._bells.sleep, self._client.rank)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.dismiss()
        self._stack.close()
        for place in self._slices:
            place.close()
        if self._common is not None:
            self._common.close()

    @property
    def first_needed(self) -> bool:
        """Whether a worker must have had the parameters whole before it can read a result."""
        return self._plan.compression is not None and not self._plan.applies_on_workers

    def join(self, *, wants_parameters: bool) -> int:
        """Join every slice; the round at which this rank stands. With `wants_parameters` they come, too."""
        wants = wants_parameters or self.first_needed
        for place in self._slices:
            place.wanted = 0
            body = {"parts": self._parts, "mark": self._client.mark, "wants_parameters": wants}
            place.send(Kind.JOIN, self._client, body=body)
        self._client.wait_until(lambda: all(place.joined for place in self._slices) or None, "the slices")
        for place in self._slices:
            place.open_shared(self._client, self._common)
            place.use_bells(self._bells)
        return min(place.round for place in self._slices)

    def parameters(self) -> Vector:
        """What the servers held when this worker joined with `wants_parameters`."""
        self._client.wait_until(lambda: all(place.has_first() for place in self._slices) or None, "the parameters")
        whole = self._layout.empty() if self._common is not None else self._whole
        for place in self._slices:
            place.copy_first(whole)
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
        body: dict[str, Any] = {"denominators": list(denominators), "rows": rows}
        if squared_norm is not None:
            body["squared_norm"] = squared_norm
        for place in self._slices:
            place.push(self._client, round_, place.part.of_contribution(values, self._parts), body)

    def pass_round(self, round_: int) -> None:
        """Take part in a round without a contribution."""
        for place in self._slices:
            place.expect(round_)
            place.send(Kind.PASS, self._client, round_)

    def collect(self, round_: int) -> Vector:
        """The result of a round, once it is here."""
        for place in self._slices:
            place.expect(round_)
        return self._collected()

    def leave(self) -> None:
        """Say to every slice that this rank contributes no more."""
        for place in self._slices:
            place.send(Kind.LEAVE, self._client)

    def _collected(self) -> Vector:
        self._client.wait_until(lambda: all(place.complete() for place in self._slices) or None, "a round's result")
        only = self._slices[0]
        if len(self._slices) == 1 and only.shares:
            return only.shared_result()
        for place in self._slices:
            place.copy_result(self._whole, self._common is not None)
        return self._whole

    def _open(self, offer: Mapping[str, Any] | None) -> SharedVector | None:
        return SharedVector.open(offer) if offer and self._client.mark is not None else None


class _Place:
    """One slice as a worker sees it."""

    def __init__(self, data: Mapping[str, Any], layout: Layout, plan: ExchangePlan, parts: int) -> None:
        self.connection = data
        self.part = Slice(layout, int(data["start"]), int(data["stop"]))
        self.host_rank = int(data.get("host_rank", -1))
        self.link: Link | None = None
        self.server: SliceServer | None = None
        self.upload: SharedVector | None = None
        self.download: SharedVector | None = None
        self.joined = False
        self.round = 0
        self.wanted = -1
        self._in_common = False
        self._bells: Doorbells | None = None
        self._offers: Mapping[str, Any] | None = None
        self._missing = self.part.size
        self._seen: set[int] = set()
        self._arrived = False
        self._by_socket = False
        self._codec = None if plan.compression is None else codec_named(plan.compression)
        self._received: Vector = np.empty(0, dtype=layout.dtype)
        self._held: Difference | None = None
        self._differences = not plan.applies_on_workers
        length = self.part.contribution_size(parts)
        self._feedback = None if self._codec is None else ErrorFeedback(self._codec, length)
        self._encoded: np.ndarray[Any, np.dtype[np.uint8]] | None = None
        self._joined_views: Vector | None = None

    def close(self) -> None:
        """Give shared memory back."""
        for region in (self.upload, self.download):
            if region is not None:
                region.close()

    def send(self, kind: Kind, client: Client, round_: int = 0, body: Mapping[str, Any] | None = None) -> None:
        """Say something short."""
        if self.server is not None:
            fields = {**(body or {}), "mark": None} if kind is Kind.JOIN else body or {}
            self.server.submit(Message(kind, client.rank, client.incarnation, round_, body=fields))
            if kind is Kind.JOIN:
                self.joined = True
                self.round = self.server.state.members[client.rank].round
        elif self.link is not None:
            shared = {"shared": True} if self.upload is not None else {}
            self.link.send(kind, round_, body={**(body or {}), **shared})

    def push(self, client: Client, round_: int, views: Sequence[Vector], body: Mapping[str, Any]) -> None:
        """Contribute this slice's part."""
        self.expect(round_)
        if self.server is not None:
            self.server.submit(Message(Kind.PUSH, client.rank, client.incarnation, round_, body=body), views)
        elif self.upload is not None:
            _fill(self.upload.vector, views)
            if not self._ring(client.rank, round_, body):
                self.send(Kind.PUSH, client, round_, body)
        elif self.link is not None:
            self._push_chunks(self.link, round_, self._contiguous(views), body)

    def expect(self, round_: int) -> None:
        """From now on the result of that round is wanted."""
        if self.wanted != round_:
            self.wanted = round_
            self._missing = self.part.size
            self._seen = set()
            self._arrived = False

    def complete(self) -> bool:
        """Whether the wanted result is here."""
        if self.server is not None:
            return self.server.answered >= self.wanted
        if self._bells is not None and not self._arrived and self._bells.result(self.host_rank) == self.wanted:
            self._arrived, self._by_socket = True, False
        return self._arrived

    def has_first(self) -> bool:
        """Whether the parameters that came with joining are here."""
        return self.server is not None or self._arrived

    def copy_first(self, whole: Vector) -> None:
        """Put the parameters that came with joining into the whole vector."""
        source = self._received if self.server is None else self.server.state.parameters
        np.copyto(whole[self.part.start : self.part.stop], source)
        self.wanted = -1

    @property
    def shares(self) -> bool:
        """Whether the last result lies in memory that the server shares with this worker alone or with all."""
        return self.download is not None and not self._by_socket

    def shared_result(self) -> Vector:
        """The result where the server put it."""
        assert self.download is not None
        return self.download.vector

    def listen(self) -> bool:
        """Take what the slice's server said."""
        some = False
        while self.link is not None and (message := self.link.receive()) is not None:
            some = True
            self._take(message)
        return some

    def open_shared(self, client: Client, common: SharedVector | None) -> None:
        """Open the memory that the server offers, where both sides are on one host."""
        if self._offers is None or client.mark is None or self.upload is not None:
            return
        if "result" not in self._offers and common is None:
            return
        upload = SharedVector.open(self._offers["upload"])
        result = SharedVector.open(self._offers["result"]) if "result" in self._offers else None
        if upload is None or ("result" in self._offers and result is None):
            for region in (upload, result):
                if region is not None:
                    region.close()
            return
        self.upload, self.download = upload, result
        self._in_common = result is None

    def use_bells(self, bells: Doorbells | None) -> None:
        """Ring instead of sending, where results lie in memory that all share."""
        self._bells = bells if self._in_common else None

    def _ring(self, rank: int, round_: int, body: Mapping[str, Any]) -> bool:
        """Say that a contribution lies ready; `False` where the server must be told over the socket."""
        bells = self._bells
        if bells is None or "squared_norm" in body:
            return False
        rung = bells.push(self.host_rank, rank, round_, body["denominators"], body["rows"])
        return rung and not bells.is_asleep(self.host_rank)

    def copy_result(self, whole: Vector, is_common: bool) -> None:
        """Put the result where it belongs in the whole vector, unless it is there."""
        target = whole[self.part.start : self.part.stop]
        if self.server is not None:
            if not is_common:
                np.copyto(target, self.server.state.result)
        elif self._in_common and not self._by_socket:
            return
        elif self.shares:
            np.copyto(target, self.shared_result())
        else:
            np.copyto(target, self._received)

    def _take(self, message: Message) -> None:
        if message.kind is Kind.REFUSED:
            raise Superseded("a newer incarnation of this rank has taken over")
        if message.kind is Kind.JOINED:
            self.joined = True
            self.round = message.round
            self._offers = message.body.get("shared")
            if message.body.get("shared") is None:
                self.upload = None
            self.wanted = message.round
        elif message.kind is Kind.RESULT and message.round == self.wanted and not self._arrived:
            self._take_result(message)

    def _take_result(self, message: Message) -> None:
        if message.payload is None:
            self._by_socket = False
            self._arrived = True
            return
        self._by_socket = True
        if message.offset in self._seen:
            return
        if self._received.size != self.part.size:
            self._received = np.empty(self.part.size, dtype=self.part.layout.dtype)
        self._seen.add(message.offset)
        start, stop = chunk_at(message.offset, self.part.size, self._received.itemsize)
        self._decode(message, start, stop)
        self._missing -= stop - start
        if self._missing <= 0:
            self._arrived = True
            if message.body.get("first") and self._codec is not None and self._differences:
                self._held = Difference(self._codec, self._received)

    def _decode(self, message: Message, start: int, stop: int) -> None:
        target = self._received[start:stop]
        if not message.body.get("coded"):
            np.copyto(target, np.frombuffer(message.payload or b"", dtype=target.dtype))
        elif self._held is not None:
            self._held.decode(message.payload, stop - start, start)
        elif self._codec is not None and not self._differences:
            self._codec.decode(message.payload, target)
        else:
            raise ExchangeError("A slice sent a difference before the whole. This is a fault of the server.")

    def _push_chunks(self, link: Link, round_: int, values: Vector, body: Mapping[str, Any]) -> None:
        for start, stop in chunks(values.size, values.itemsize):
            last = body if stop == values.size else {}
            link.send(Kind.PUSH, round_, start, last, self._payload(values, start, stop))

    def _payload(self, values: Vector, start: int, stop: int) -> Any:
        if self._feedback is None or self._codec is None:
            return values[start:stop]
        _, step = chunks(values.size, values.itemsize)[0]
        if self._encoded is None:
            whole_chunks = -(-values.size // max(1, step))
            self._encoded = np.empty(whole_chunks * self._codec.encoded_size(step), dtype=np.uint8)
        place = start // max(1, step) * self._codec.encoded_size(step)
        return self._feedback.encode(values[start:stop], self._encoded[place:], start)

    def _contiguous(self, views: Sequence[Vector]) -> Vector:
        if len(views) == 1:
            return np.ascontiguousarray(views[0])
        if self._joined_views is None:
            self._joined_views = np.empty(sum(view.size for view in views), dtype=views[0].dtype)
        _fill(self._joined_views, views)
        return self._joined_views


def _fill(out: Vector, views: Sequence[Vector]) -> None:
    place = 0
    for view in views:
        np.copyto(out[place : place + view.size], view)
        place += view.size
