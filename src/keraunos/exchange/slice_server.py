"""The server of one slice: sockets, buffers and shared memory around its state. Runs where the slice is hosted.

On the driver and on executors it has a thread of its own (`serve`); a worker that hosts a slice of a synchronous
plan lets it work while it waits for results (`pump`), when it has nothing else to do; and where one port must do for
the coordinator too, the coordinator's thread hands its messages over (`hear`). Under `hogwild` several of them serve
one slice: each its own ranks, all with one vector and one rule.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keraunos.exchange.codecs.registry import codec_named
from keraunos.exchange.content import Content
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.downlink import Downlink
from keraunos.exchange.endpoint import Endpoint
from keraunos.exchange.kept import Kept
from keraunos.exchange.message_parts import SlicePlace
from keraunos.exchange.messages import Joined, Offers, Push, RoundResult
from keraunos.exchange.rules.registry import make_rule
from keraunos.exchange.rules.rule import Rule
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector, host_mark
from keraunos.exchange.slice_state import Action, Offer, PartialNorm, Reply, Save, SliceState
from keraunos.exchange.wire import Message
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.parameters import Vector, aligned_empty

_LOOK_MS = 50


class SliceServer:
    """One slice of the parameters, served over `endpoint` to the ranks that join."""

    def __init__(
        self,
        plan: ExchangePlan,
        part: Slice,
        workers: int,
        parameters: Vector | None,
        endpoint: Endpoint,
        *,
        ranks: Iterable[int] = (),
        alone: bool = True,
        common: Vector | None = None,
        bells: Doorbells | None = None,
        rule: Rule | None = None,
        tell_norm: Callable[[int, float], None] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
        on_save: Callable[[int, Kept], None] | None = None,
    ) -> None:
        """Serve a slice.

        Args:
            plan: how contributions become parameters.
            part: the slice.
            workers: how many workers the job has.
            parameters: the slice's parameters to begin with; `None` where the rule keeps none.
            endpoint: where workers reach it.
            ranks: who takes part, where rounds need everyone.
            alone: whether this is the only slice.
            common: memory that all workers of a synchronous plan see already; results go there.
            bells: how those workers say so without a socket.
            rule: the rule and, with `parameters` used as they are, the vector of other servers of the same slice.
            tell_norm: tells the others this slice's part of a round's squared norm.
            on_failure: is told by the serving thread what ended it.
            on_save: is given by the serving thread what the slice is before a round that is to be saved.
        """
        self.part = part
        self._plan = plan
        self._endpoint = endpoint
        self._mark = host_mark() if plan.compression is None else None
        self._tell_norm = tell_norm
        self._on_failure = on_failure
        self._on_save = on_save
        self.failure: Exception | None = None
        self._buffers: dict[int, Vector] = {}
        self._uploads: dict[int, SharedVector] = {}
        self._results: dict[int, SharedVector] = {}
        self._clients: dict[int, bytes] = {}
        self._commands: queue.SimpleQueue[Callable[[], list[Action]]] = queue.SimpleQueue()
        self._codec = codec_named(plan.compression or "plain")
        self.rule = make_rule(plan, part, workers) if rule is None else rule
        self.in_common = common is not None
        result = self._result_vector(common)
        if rule is not None:
            center = parameters if parameters is not None else result
        else:
            center = self._center(parameters, result)
        self.state = SliceState(
            plan,
            part,
            self.rule,
            center,
            result if plan.synchronous or not self.rule.gives_parameters else center,
            buffer_of=self._buffers.__getitem__,
            decode=self._codec.decode,
            alone=alone,
        )
        self._downlink = Downlink(
            plan.compression, part.size, synchronous=plan.synchronous, differences=not plan.applies_on_workers
        )
        self._bells = bells
        self._rung: dict[int, int] = {}
        self._host_rank: int | None = None
        self.answered = -1
        self._act(self.state.expect(ranks))

    def close(self) -> None:
        """Give the shared memory back; the endpoint belongs to the caller."""
        self._buffers.clear()
        for region in (*self._uploads.values(), *self._results.values()):
            region.close()

    @property
    def place(self) -> SlicePlace:
        """Where a worker reaches this slice, and what it is."""
        return SlicePlace(**self._endpoint.connection, start=self.part.start, stop=self.part.stop)

    @property
    def socket(self) -> Any:
        """What wakes up whoever pumps."""
        return self._endpoint.socket

    @property
    def parameters(self) -> Vector:
        """The slice's parameters; another thread may be changing them."""
        return self.state.parameters

    @property
    def dropped(self) -> int:
        """How many messages were not taken."""
        return self.state.dropped + self._endpoint.dropped

    def keep(self) -> Kept:
        """What this slice is now, and what those who read it have of it; for the serving thread."""
        kept = self.state.keep()
        parameters, *rule = kept.arrays
        return replace(kept, arrays=[parameters, self._downlink.keep(), *rule])

    def go_on_from(self, kept: Kept) -> None:
        """Be what was kept, before anybody has joined."""
        if kept.arrays:
            parameters, sent, *rule = kept.arrays
            self._downlink.go_on_from(sent)
            kept = replace(kept, arrays=[parameters, *rule])
        self.state.go_on_from(kept)

    def command(self, function: Callable[[], list[Action]]) -> None:
        """Let the serving thread do something with the state before it takes the next message."""
        self._commands.put(function)

    def pump(self, timeout_ms: int = 0) -> bool:
        """Take what has arrived; whether there was something."""
        self._obey()
        some = self._bells is not None and self._hear_bells(self._bells)
        if timeout_ms and not some and not self._endpoint.socket.poll(timeout_ms):
            return False
        for client, message in self._endpoint.receive():
            some = True
            self._take(client, message)
        return some

    def serve(self, ended: threading.Event) -> None:
        """Serve in this thread until `ended` is set."""
        while not ended.is_set() and self.failure is None:
            self._guarded(lambda: self.pump(_LOOK_MS))

    def hear(self, client: bytes, message: Message) -> None:
        """Take a message that came over an endpoint which somebody else reads, in the reader's thread."""
        if self.failure is None:
            self._guarded(lambda: self._take(client, message))

    def follow_commands(self) -> None:
        """Do what was asked for with `command`; for whoever calls `hear`."""
        if self.failure is None:
            self._guarded(self._obey)

    def submit(self, message: Message, said: Content, views: Sequence[Vector] = ()) -> None:
        """Take a message from the worker that hosts this slice; a contribution is used where it lies.

        Only in the thread that pumps. What the worker is answered is in `answered`: its result is `state.result`.
        """
        self._host_rank = message.rank
        if len(views) == 1:
            self._buffers[message.rank] = views[0]
        elif views:
            np.concatenate(views, out=self._buffers[message.rank])
        self._act(self.state.receive(message, said))

    def _guarded(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whoever owns this server asks for it
            self.failure = error
            if self._on_failure is not None:
                self._on_failure(error)

    def _obey(self) -> None:
        while not self._commands.empty():
            self._act(self._commands.get()())

    def _hear_bells(self, bells: Doorbells) -> bool:
        some = False
        for rank, member in list(self.state.members.items()):
            if rank == self._host_rank or self._host_rank is None:
                continue
            round_ = bells.pushed(self._host_rank, rank)
            if round_ != self._rung.get(rank, -1):
                some = True
                self._rung[rank] = round_
                if round_ == member.round and not member.complete:
                    push = bells.contribution(self._host_rank, rank)
                    self._act(self.state.receive(Message(push.kind, rank, member.incarnation, round_), push))
        return some

    def _result_vector(self, common: Vector | None) -> Vector:
        if common is not None:
            return common
        if not self._plan.synchronous or self._mark is None:
            return aligned_empty(self.part.size, self.part.layout.dtype)
        self._results[-1] = SharedVector.create(self.part.size, self.part.layout.dtype)
        return self._results[-1].vector

    def _center(self, parameters: Vector | None, result: Vector) -> Vector:
        if parameters is None or (self._plan.synchronous and self.rule.gives_parameters):
            center = result
        else:
            center = aligned_empty(self.part.size, self.part.layout.dtype)
        if parameters is not None:
            np.copyto(center, parameters)
        return center

    def _take(self, client: bytes, message: Message) -> None:
        known = self.state.members.get(message.rank)
        before = None if known is None else known.incarnation
        # A rank is who joined as it: the same words from somebody else are a replay.
        if message.incarnation == before and self._clients.get(message.rank) != client:
            self._endpoint.dropped += 1
            return
        if message.kind is Push.kind and message.payload is None and message.rank not in self._uploads:
            # Nobody but one who shares this server's memory has put a contribution there.
            self._endpoint.dropped += 1
            return
        actions = self.state.receive(message)
        known = self.state.members.get(message.rank)
        if known is not None and known.incarnation != before:
            # Only now: a message that was not taken gives nobody a rank.
            self._clients[message.rank] = client
        self._act(actions, client)

    def _act(self, actions: Iterable[Action], sender: bytes | None = None) -> None:
        for action in actions:
            if isinstance(action, Offer):
                self._make_buffers(action.rank, action.length)
            elif isinstance(action, PartialNorm):
                if self._tell_norm is not None:
                    self._tell_norm(action.round, action.value)
            elif isinstance(action, Save):
                if self._on_save is not None:
                    self._on_save(action.round, self.keep())
            elif action.rank == self._host_rank and not action.to_sender:
                if isinstance(action.said, RoundResult) and not action.said.first:
                    self.answered = action.round
            else:
                client = sender if action.to_sender else self._clients.get(action.rank)
                if client is not None:
                    self._reply(client, action)

    def _make_buffers(self, rank: int, length: int) -> None:
        dtype = self.part.layout.dtype
        if rank in self._uploads:
            self._uploads.pop(rank).close()
        if self._mark is None or self.state.members[rank].mark != self._mark:
            self._buffers[rank] = np.empty(length, dtype=dtype)
            return
        self._uploads[rank] = SharedVector.create(length, dtype)
        self._buffers[rank] = self._uploads[rank].vector
        if not self._plan.synchronous and rank not in self._results:
            self._results[rank] = SharedVector.create(self.part.size, dtype)

    def _reply(self, client: bytes, reply: Reply) -> None:
        rank, said = reply.rank, reply.said
        if isinstance(said, Joined) and rank in self._uploads:
            reply = replace(reply, said=Joined(self._offers(rank)))
        if reply.vector is None or not isinstance(said, RoundResult):
            self._endpoint.send(client, reply.message)
        elif self._rings(reply, said):
            return
        elif self._shares_with(rank) and not said.first:
            if not self._plan.synchronous:
                np.copyto(self._results[rank].vector, reply.vector)
            self._endpoint.send(client, reply.message)
        else:
            # Under a synchronous plan nobody writes to the vector before everyone has read it, so it is not copied.
            copy = not self._plan.synchronous
            for each in self._downlink.messages(reply.message, said, reply.vector):
                self._endpoint.send(client, each, copy=copy)

    def _shares_with(self, rank: int) -> bool:
        """Whether a rank has opened the memory that it was offered; what it says without an offer does not count."""
        return rank in self._uploads and self.state.members[rank].sharing

    def _rings(self, reply: Reply, said: RoundResult) -> bool:
        """Tell a rank that its result is there without a socket, if it is awake."""
        bells = self._bells
        if bells is None or self._host_rank is None or said.first or reply.rank not in self._rung:
            return False
        bells.give_result(self._host_rank, reply.round)
        return not bells.is_asleep(reply.rank)

    def _offers(self, rank: int) -> Offers:
        result = None if self.in_common else self._results[-1 if self._plan.synchronous else rank].offer
        return Offers(self._uploads[rank].offer, result)
