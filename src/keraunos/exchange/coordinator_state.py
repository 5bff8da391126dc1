"""The driver's logic: who takes part, when training starts, what is reported, how it ends. No I/O, clock or threads.

A worker says HELLO, fetches the job, reads its rows, says READY, and gets START with every rank's rows and the
addresses of all slices; it then exchanges parameters with the servers of the slices and speaks to the coordinator
only to report. Servers on executors join the same way, under ranks of their own. Of two incarnations of a rank the
newer wins, and the older is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keraunos.exchange import messages
from keraunos.exchange.content import Content, Handlers
from keraunos.exchange.coordination import Action, Arrived, Event, Member, Prepared, Send, StateGiven
from keraunos.exchange.held_states import Held, HeldStates, Standing
from keraunos.exchange.message_parts import KeptSlice, ShardFacts, SliceAddress, SlicePlace
from keraunos.exchange.norm_sums import NormSums
from keraunos.exchange.sharding import Slice, cut
from keraunos.exchange.tally import Tally
from keraunos.exchange.wire import (
    CHUNK_BYTES,
    LEFT_OUT,
    MALFORMED,
    SUPERSEDED,
    Message,
    WireError,
    unpack_arrays,
    unpack_typed,
)
from keraunos.job.placement import FIRST_SERVER, ON_DRIVER, Placement
from keraunos.parameters import Layout, Vector


class CoordinatorState:
    """All that the coordinator knows.

    Attributes:
        workers: how many workers the job has.
        placement: where the slices live.
        needs_all: whether training starts only when `start` is called, for everyone at once.
        blobs: what members may fetch, by name.
        slices: where the slices are; filled by the driver, or from what the hosts say.
        alternatives: several servers of the one slice, of which a rank is given one.
        signs: how often each member was heard; whoever watches them sees who has fallen silent.
        tallies: what each member last said of itself.
        left_out: the ranks that the others go on without.
    """

    def __init__(
        self,
        layout: Layout,
        workers: int,
        *,
        placement: Placement = ON_DRIVER,
        needs_all: bool = True,
        anywhere: bool = True,
        blobs: Mapping[str, Callable[[], memoryview]] | None = None,
    ) -> None:
        self.layout = layout
        self.workers = workers
        self.placement = placement
        self.needs_all = needs_all
        self.anywhere = anywhere
        self.blobs = dict(blobs or {})
        self.slices: list[SlicePlace] = []
        self.alternatives: list[SlicePlace] = []
        self.common: dict[str, Any] | None = None
        self.bells: dict[str, Any] | None = None
        self.uploaded: Vector = np.empty(0, dtype=layout.dtype)
        self.uploads_missing: set[int] = set()
        self.start_facts = messages.Start()
        self.members: dict[int, Member] = {}
        self.signs: dict[int, int] = {}
        self.tallies: dict[int, Tally] = {}
        self.left_out: set[int] = set()
        self.laps_done: dict[int, int] = {}
        self.steps_traced: dict[int, int] = {}
        self.decided: messages.Go | None = None
        self.started = False
        self.stopped: str | None = None
        self.dropped = 0
        self._hosts: dict[int, SliceAddress] = {}
        self._probed: set[int] = set()
        self._done_before: dict[int, Tally] = {}
        self._rows: dict[int, ShardFacts] = {}
        self._norms = NormSums()
        self._states = HeldStates()
        self._resumed = False
        self._handlers = self._registered()

    def go_on_from(self, standing: Standing) -> None:
        """Let everyone continue where the training stands, as if they had been lost there."""
        self._resumed = True
        self._states.go_on_from(standing)
        self.laps_done = dict(standing.laps_done)
        self.steps_traced = dict(standing.steps_traced)
        self.decided = standing.decided

    def receive(self, message: Message) -> list[Action]:
        """What follows from a message; nothing that arrives can raise."""
        try:
            known = self.members.get(message.rank)
            older = known is not None and message.incarnation < known.incarnation
            if older and known is not None and message.kind is messages.State.kind and known.returning:
                # One whose rank was taken leaves its state to the one that has it now.
                state = messages.State.of(message.body)
                if state.target == message.rank:
                    return self._state(message, state)
            if older or message.rank in self.left_out:
                self.dropped += 1
                stop = messages.Stop(SUPERSEDED if older else LEFT_OUT)
                return [Send(message.rank, stop.message(message.rank, message.incarnation), to_sender=True)]
            if message.kind is messages.Hello.kind:
                return self._hello(message, messages.Hello.of(message.body))
            if known is None or message.incarnation > known.incarnation:
                return self._drop()
            self.signs[message.rank] = self.signs.get(message.rank, 0) + 1
            handler = self._handlers.of(message.kind)
            return self._drop() if handler is None else handler(message, messages.content_of(message))
        except MALFORMED:
            return self._drop()

    def start_of(self, rank: int) -> messages.Start:
        """What a worker is told when training starts: every rank's rows, from which it derives the rounds."""
        slices = [self.alternatives[rank % len(self.alternatives)]] if self.alternatives else self.slices
        return replace(
            self.start_facts,
            rows={rank: shard.rows for rank, shard in self._rows.items()},
            slices=tuple(slices),
            common=self.common,
            bells=self.bells,
            again=self.members[rank].returning,
            laps_done=self.laps_done.get(rank, 0),
            decided=self.decided,
            kept=self._kept_slice(rank),
        )

    def start(self, common: dict[str, Any] | None = None, bells: dict[str, Any] | None = None) -> list[Action]:
        """Begin: everyone that trains is ready and the driver has agreed."""
        self.started = True
        self.common = common
        self.bells = bells
        self._place()
        return self._start_ready()

    def stop(self, reason: str) -> list[Action]:
        """End the job for everyone."""
        self.stopped = reason
        return self._to_all(messages.Stop(reason))

    def go(self, lap: int, learning_rate: float | None, *, last: bool) -> list[Action]:
        """Tell everyone what the driver decided after a lap."""
        self.decided = messages.Go(lap, learning_rate, last)
        return self._to_all(self.decided, lap)

    def save(self, round_: int) -> list[Action]:
        """Have everyone save what they have before a round that is still to come, or, with 0, hosts what they have."""
        told = [rank for rank in sorted(self.members if round_ else self._hosts) if not self.members[rank].gone]
        return [Send(rank, messages.Save().message(round_=round_)) for rank in told]

    def release(self) -> list[Action]:
        """Training is over: hosts of slices may end."""
        return self._to_all(messages.Release())

    def leave_out(self, rank: int) -> list[Action]:
        """Go on without a worker: it is told so, now or when it is heard again, and those who waited for it are served.

        The servers of slices elsewhere are told, too; one on the driver must be told by the driver.
        """
        self.left_out.add(rank)
        if not self.started:
            self._rows.pop(rank, None)
        member = self.members[rank]
        member.gone = True
        actions: list[Action] = [Send(rank, messages.Stop(LEFT_OUT).message())]
        return actions + self._tell_hosts(rank, for_good=True) + self._without(rank)

    def retire(self, rank: int) -> list[Action]:
        """Tell the servers of slices elsewhere that a worker has trained to the end."""
        return self._tell_hosts(rank, for_good=False)

    def _tell_hosts(self, rank: int, *, for_good: bool) -> list[Action]:
        remove = messages.Remove(rank, for_good).message()
        return [Send(host, remove) for host in sorted(self._hosts) if not self.members[host].gone]

    def probe(self) -> list[Action]:
        """Ask every member where its threads are."""
        self._probed = {rank for rank, member in self.members.items() if not member.gone}
        return self._to_all(messages.Probe())

    def ask_for_parameters(self, *, last: bool = False) -> list[Action]:
        """Have the hosts of the slices send what they hold; `uploads_missing` is empty once all have."""
        self.uploads_missing = set(self._hosts)
        return [Send(rank, messages.Upload(last).message()) for rank in sorted(self._hosts)]

    def ask_one_for_parameters(self) -> list[Action]:
        """Have one worker send the parameters, where each of them has all of them; another one if it is lost."""
        there = self._rows.keys() - self.left_out
        self.uploads_missing = {min(self._live(), default=min(there))}
        return [Send(rank, messages.Upload().message()) for rank in self.uploads_missing]

    def recall_parameters(self, rank: int) -> list[Action]:
        """Have a worker send the parameters that it kept when a lap began."""
        self.uploads_missing = {rank}
        return [Send(rank, messages.Recall().message())]

    def alive(self) -> list[Action]:
        """A sign of life for everyone."""
        return self._to_all(messages.Alive())

    def held(self) -> dict[int, tuple[int, list[Any]]]:
        """Each rank's weights and optimizer state as they were left last, and the round before which they were."""
        return self._states.read()

    def tally(self, rank: int) -> Tally | None:
        """What a member last said of itself, with the work of its earlier incarnations."""
        last = self.tallies.get(rank)
        return self._done_before.get(rank) if last is None else last.after(self._done_before.get(rank))

    @property
    def uploader_left_out(self) -> bool:
        """Whether the worker that sends the parameters by itself in the end was left out."""
        return bool(self._rows) and min(self._rows) in self.left_out

    def same_host(self, mark: str | None) -> bool:
        """Whether everyone who trains may share memory with the process of that mark."""
        return mark is not None and all(self.members[rank].mark == mark for rank in self._rows)

    def _registered(self) -> Handlers[Message, list[Action]]:
        handlers: Handlers[Message, list[Action]] = Handlers()
        handlers.on(messages.Fetch, self._fetch)
        handlers.on(messages.Ready, self._ready)
        handlers.on(messages.Report, self._report)
        handlers.on(messages.Lap, self._lap)
        handlers.on(messages.Losses, self._losses)
        handlers.on(messages.Parameters, self._parameters)
        handlers.on(messages.State, self._state)
        handlers.on(messages.Missed, self._pass_on)
        handlers.on(messages.Ask, self._ask)
        handlers.on(messages.Norm, self._norm)
        handlers.on(messages.Failed, self._leave)
        handlers.on(messages.Done, self._pass_on)
        handlers.on(messages.Bye, self._leave)
        handlers.on(messages.Pulse, self._pulse)
        handlers.on(messages.Stacks, self._stacks)
        # What a worker has is not finite; it waits for what the driver does about it.
        handlers.on(messages.Diverged, self._pass_on)
        return handlers

    def _to_all(self, said: Content, round_: int = 0) -> list[Action]:
        message = said.message(round_=round_)
        return [Send(rank, message) for rank, member in sorted(self.members.items()) if not member.gone]

    def _drop(self) -> list[Action]:
        self.dropped += 1
        return []

    def is_rank(self, rank: int) -> bool:
        """Whether a worker or a server of this job may have that rank."""
        return self.placement.has_member(rank, self.workers)

    def _hello(self, message: Message, hello: messages.Hello) -> list[Action]:
        if not self.is_rank(message.rank):
            return self._drop()
        known = self.members.get(message.rank)
        again = known is not None and message.incarnation > known.incarnation
        if known is None or again:
            member = self.members[message.rank] = Member(message.incarnation, hello.host, hello.mark)
            member.pulse = hello.pulse or None
            if message.rank in self.tallies:
                self._done_before[message.rank] = self.tally(message.rank) or Tally()
                del self.tallies[message.rank]
            self.signs[message.rank] = self.signs.get(message.rank, 0) + 1
            member.returning = known.started if known is not None else self._resumed and message.rank < FIRST_SERVER
        if self.stopped is not None:
            return [Send(message.rank, messages.Stop(self.stopped).message())]
        sizes = {name: blob().nbytes for name, blob in self.blobs.items()}
        welcome = messages.Welcome(sizes).message(message.rank, message.incarnation)
        event = Event(Arrived(hello, message.incarnation, again), message.rank)
        actions: list[Action] = [event, Send(message.rank, welcome)]
        if again and known is not None and not known.gone:
            # Spark starts ranks that are alive, too, where it runs a stage again. One that waits says nothing that it
            # could be answered to, and holds a slot that a lost rank may need.
            stop = messages.Stop(SUPERSEDED).message(message.rank, known.incarnation)
            actions.append(Send(message.rank, stop, to_former=True))
        return actions + self._without(message.rank) if again else actions

    def _without(self, rank: int) -> list[Action]:
        """Ask others for what a rank that was lost had been asked for: the parameters, or its state for another."""
        actions: list[Action] = []
        if rank in self.uploads_missing and rank not in self._hosts:
            actions += self.ask_one_for_parameters()
        waiting = [other for other, each in self.members.items() if each.asked_for == rank and not each.gone]
        return actions + [action for other in waiting for action in self._give(other)]

    def _fetch(self, message: Message, fetch: messages.Fetch) -> list[Action]:
        blob = self._blob(fetch.name, message.rank)
        piece = blob[message.offset : message.offset + CHUNK_BYTES]
        answer = messages.Blob().message(message.rank, message.incarnation, offset=message.offset, payload=piece)
        return [Send(message.rank, answer)]

    def _blob(self, name: str, rank: int) -> memoryview:
        if name == "state":
            return memoryview(self._states.ranks[rank].buffer)
        if name == "slice":
            return memoryview(self._states.slices[self._slice_index(rank)].held.buffer)
        return self.blobs[name]()

    def _slice_index(self, rank: int) -> int:
        return [each.host_rank for each in self.slices].index(rank)

    def _kept_slice(self, rank: int) -> KeptSlice | None:
        """What the host of a slice is told of what that was, to fetch it and go on from there."""
        if not self._states.slices or rank not in self._hosts:
            return None
        return self._states.slices[self._slice_index(rank)].described()

    def _ready(self, message: Message, ready: messages.Ready) -> list[Action]:
        member = self.members[message.rank]
        if member.ready:
            return self._start_member(message.rank) if member.started else []
        if message.rank >= FIRST_SERVER:
            return self._server_ready(message.rank, member, ready)
        shard = ready.shard
        if shard is None or (self.placement.on_workers and ready.slice is None):
            return self._drop()
        if self.placement.on_workers and ready.slice is not None:
            self._hosts[message.rank] = ready.slice
        member.ready = True
        before = self._rows.setdefault(message.rank, shard)
        event = Event(Prepared(shard, changed=before.digest != shard.digest), message.rank)
        return [event] if self.needs_all and not self.started else [event, *self._start_ready()]

    def _server_ready(self, rank: int, member: Member, ready: messages.Ready) -> list[Action]:
        if ready.slice is None:
            return self._drop()
        self._hosts[rank] = ready.slice
        member.ready = True
        self._place()
        return [Event(Prepared(), rank), *self._start_ready()]

    def _place(self) -> None:
        """Settle who hosts which slice, where members do and all of them have said where they are."""
        hosts = self.placement.hosts(self._rows)
        if hosts and self._hosts.keys() >= set(hosts):
            self.slices = self._slices(cut(self.layout, len(hosts), anywhere=self.anywhere), hosts)

    def _slices(self, parts: Sequence[Slice], ranks: Sequence[int]) -> list[SlicePlace]:
        hosts = [self._hosts[rank] for rank in ranks]
        return [
            SlicePlace(host.address, host.credentials, part.start, part.stop, rank)
            for host, part, rank in zip(hosts, parts, ranks, strict=True)
        ]

    def _start_ready(self) -> list[Action]:
        """Start those who are ready, as far as training may start."""
        if not self.slices or (self.needs_all and not self.started):
            return []
        waiting = [rank for rank, member in sorted(self.members.items()) if member.ready and not member.started]
        return [action for rank in waiting for action in self._start_member(rank)]

    def _start_member(self, rank: int) -> list[Action]:
        self.members[rank].started = True
        return [Send(rank, self.start_of(rank).message(rank))]

    def _pass_on(self, message: Message, said: Content) -> list[Action]:
        return [Event(said, message.rank, round=message.round)]

    def _report(self, message: Message, report: messages.Report | messages.Lap) -> list[Action]:
        self._keep_tally(message.rank, report.tally)
        return [Event(report, message.rank, unpack_arrays(report.shapes, message.payload), message.round)]

    def _lap(self, message: Message, lap: messages.Lap) -> list[Action]:
        actions = self._report(message, lap)
        if message.round < self.laps_done.get(message.rank, 0):
            return self._drop()
        self.laps_done[message.rank] = message.round + 1
        return actions

    def _losses(self, message: Message, losses: messages.Losses) -> list[Action]:
        """Losses of consecutive steps and their rows; a rank that came back may repeat some, which are left out."""
        pairs = np.frombuffer(message.payload or b"", dtype=np.float64).reshape(-1, 2)
        known = self.steps_traced.get(message.rank, 0)
        fresh = pairs[max(0, known - message.round) :]
        if not fresh.size:
            return self._drop()
        self.steps_traced[message.rank] = message.round + len(pairs)
        return [Event(losses, message.rank, [fresh.copy()], max(known, message.round))]

    def _parameters(self, message: Message, parameters: messages.Parameters) -> list[Action]:
        if self.uploaded.size != self.layout.size:
            self.uploaded = self.layout.empty()
        if message.payload is not None:
            values = np.frombuffer(message.payload, dtype=self.uploaded.dtype)
            if message.offset + values.size > self.uploaded.size:
                raise WireError("a chunk reaches past the end of the vector")
            np.copyto(self.uploaded[message.offset : message.offset + values.size], values)
        if not parameters.complete:
            return []
        self.uploads_missing.discard(message.rank)
        return [Event(parameters, message.rank, round=message.round)]

    def _state(self, message: Message, state: messages.State) -> list[Action]:
        """A rank's weights and optimizer state: its own to keep, or for one that asked; or what the driver wants."""
        target = state.target
        if not self.is_rank(target):
            return self._drop()
        buffer = self._states.arrives(message, state)
        if buffer is None:
            return []
        # Those who fetch it, and who saves it, read it as it is described.
        arrays = unpack_typed(state.arrays, buffer)
        if state.save or state.last:
            kept = None if state.slice is None else replace(state.slice, arrays=arrays)
            return [Event(StateGiven(kept, state.last), message.rank, arrays, message.round)]
        self._states.hold(target, Held(message.round, state.arrays, buffer))
        asked = target != message.rank or self.members[target].wanted_round == message.round
        return self._hand_over(target) if asked else []

    def _ask(self, message: Message, ask: messages.Ask) -> list[Action]:
        """A rank that came back wants weights and optimizer state, as they are before the round that it names."""
        self.members[message.rank].asked_for = None
        if not ask.from_others:
            self._states.choose(message.rank, message.round)
            return self._give(message.rank, None)
        return self._give(message.rank, message.round)

    def _give(self, rank: int, round_: int | None = None) -> list[Action]:
        member = self.members[rank]
        wanted = member.wanted_round if round_ is None else round_
        others = [other for other in self._live() if other != rank]
        held = self._states.ranks.get(rank)
        if wanted is None or not others or (held is not None and held.round == wanted):
            return self._hand_over(rank)
        member.wanted_round, member.asked_for = wanted, others[0]
        return [Send(others[0], messages.Snapshot(rank).message(round_=wanted))]

    def _live(self) -> list[int]:
        """The workers that train, and have since they started."""
        return [
            rank
            for rank, each in sorted(self.members.items())
            if rank < FIRST_SERVER and each.started and not each.returning and not each.gone
        ]

    def _hand_over(self, rank: int) -> list[Action]:
        member, held = self.members[rank], self._states.ranks.get(rank)
        member.asked_for, member.wanted_round, member.returning = None, None, False
        said = messages.HeldState(0) if held is None else held.described()
        return [Send(rank, said.message(rank, round_=0 if held is None else held.round))]

    def _pulse(self, message: Message, pulse: messages.Pulse) -> list[Action]:
        self._keep_tally(message.rank, pulse.tally)
        return []

    def _keep_tally(self, rank: int, tally: Tally) -> None:
        self.tallies[rank] = tally.newer(self.tallies.get(rank))

    def _stacks(self, message: Message, stacks: messages.Stacks) -> list[Action]:
        if message.rank not in self._probed:
            return self._drop()
        self._probed.discard(message.rank)
        return [Event(stacks, message.rank)]

    def _norm(self, message: Message, norm: messages.Norm) -> list[Action]:
        """A slice's part of a round's squared norm; once all are here everyone gets the sum, added in their order."""
        if message.rank not in self._hosts:
            return self._drop()
        total = self._norms.add(message.round, message.rank, norm.value, len(self.slices))
        if total is None:
            return []
        answer = messages.TotalNorm(total).message(round_=message.round)
        return [Send(rank, answer) for rank in self._norms.ranks(message.round)]

    def _leave(self, message: Message, said: messages.Bye | messages.Failed) -> list[Action]:
        self.members[message.rank].gone = True
        actions = self._pass_on(message, said)
        if isinstance(said, messages.Failed):
            # The worker may end in peace: its error is with the driver.
            actions.append(Send(message.rank, messages.Stop("your failure is known").message()))
        return actions
