"""The driver's side of the exchange: the coordinator, and the slices where they live here. Runs on the driver.

`Server` is a context manager: inside it the job can be joined; outside it threads, sockets, ports and shared memory
are gone. Where the slices live on executors or on the workers, it knows them by what their hosts tell.
"""

from __future__ import annotations

import json
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange import security
from keraunos.exchange.addresses import LOOPBACK, socket_folder
from keraunos.exchange.coordination import Action, Event, StateGiven
from keraunos.exchange.coordinator import Coordinator
from keraunos.exchange.coordinator_state import CoordinatorState
from keraunos.exchange.doorbells import Doorbells
from keraunos.exchange.endpoint import Endpoint, Place
from keraunos.exchange.held_states import Standing
from keraunos.exchange.kept import Kept
from keraunos.exchange.link import PATIENCE_SECONDS
from keraunos.exchange.messages import Failed, Missed, Start
from keraunos.exchange.rules.registry import is_elementwise, make_rule
from keraunos.exchange.rules.rule import Rule
from keraunos.exchange.sharding import Slice
from keraunos.exchange.shared_memory import SharedVector, host_mark
from keraunos.exchange.slice_server import SliceServer
from keraunos.exchange.tally import Tally
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import FIRST_SERVER, ON_DRIVER, Placement
from keraunos.job.saving import SavePoints
from keraunos.parameters import Layout, Vector

COLLECT_SECONDS = 120.0

# Threads that add into one vector under `hogwild`; more than a few only wait for memory.
_HOGWILD_THREADS = 4
# A server that does not obey by then has failed, and has said so.
_OBEY_SECONDS = 10.0


class Server:
    """Where a job's workers meet.

    Args:
        plan: how they share parameters.
        workers: how many there are.
        layout: of the vector that is shared.
        parameters: what it holds to begin with.
        placement: where the slices live.
        host: the IP address to listen on; without it, and without ports, a socket file that only this user's
            processes can reach.
        advertised: the host that workers connect to, where it is another than `host`.
        ports: the first and the last port that may be used; any free one without it. One port is enough: the
            coordinator and a slice on the driver then share it, and a thread.
        job: the job as bytes, which workers fetch.
        backend: what Keras runs on where a rule needs it.
        patience: for how many seconds members wait for a driver that is there but silent.
        standing: where an earlier fit left the training; `None` for one that begins.
    """

    def __init__(
        self,
        plan: ExchangePlan,
        workers: int,
        layout: Layout,
        parameters: Vector,
        *,
        placement: Placement = ON_DRIVER,
        host: str | None = None,
        advertised: str | None = None,
        ports: tuple[int, int] | None = None,
        job: bytes = b"",
        backend: str = "jax",
        patience: float = PATIENCE_SECONDS,
        standing: Standing | None = None,
    ) -> None:
        self.plan = plan
        self._standing = standing
        self.host = host
        self._layout = layout
        self._workers = workers
        self._initial = parameters
        self._advertised = advertised
        self._ports = ports
        self._place = Place(None)
        self._credentials = security.Credentials("")
        self._stack = ExitStack()
        self._placement = placement
        self._one_port = placement.shares_port(ports)
        self._slices: list[SliceServer] = []
        self._service_threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self._common: SharedVector | None = None
        self._bells: SharedVector | None = None
        about = json.dumps(
            {
                "plan": plan.to_json(),
                "layout": layout.to_json(),
                "workers": workers,
                "ports": ports,
                "backend": backend,
                "patience": patience,
            }
        ).encode()
        self.state = CoordinatorState(
            layout,
            workers,
            placement=placement,
            needs_all=placement.needs_all_workers(plan),
            anywhere=is_elementwise(plan),
            blobs={
                "job": lambda: memoryview(job),
                "exchange": lambda: memoryview(about),
                "parameters": lambda: self._initial.data.cast("B"),
            },
        )
        if standing is not None:
            self.state.go_on_from(standing)

    def __enter__(self) -> Self:
        with self._stack:
            folder = None if self.host or self._ports else self._stack.enter_context(socket_folder())
            self._place = Place(folder, self.host or LOOPBACK, self._advertised or "", self._ports)
            self._credentials = security.Credentials.fresh(encrypted=folder is None)
            guarded = self._stack.enter_context(security.guarded_context(self._credentials))
            context = guarded.context
            self._service_threads += guarded.threads
            self._stack.callback(self._close_slices)
            if self._placement.on_driver and not self._one_port:
                self._serve_slices(context)
            endpoint = self._bound(context)
            beside = self._slice_servers([endpoint])[0] if self._one_port else None
            self._coordinator = self._stack.enter_context(
                Coordinator(self.state, context, endpoint, beside=beside, on_failure=self._fail)
            )
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        for region in (self._common, self._bells):
            if region is not None:
                region.close()

    @property
    def connection(self) -> dict[str, Any]:
        """All that a member needs to connect, as plain data; it holds the job's secrets."""
        return self._coordinator.connection

    @property
    def events(self) -> queue.SimpleQueue[Event]:
        """What the members report."""
        return self._coordinator.events

    @property
    def dropped(self) -> int:
        """How many messages were not taken, here."""
        at_slices = sum(each.state.dropped if self._one_port else each.dropped for each in self._slices)
        return self._coordinator.dropped + at_slices

    def parameters(self, check: Callable[[], None] | None = None, *, last: bool = False) -> Vector:
        """The parameters as they are now, or with `last` as they are when training is over.

        `check` is called while waiting for them and may raise.

        They come from here, from the hosts of the slices, or, where the rule runs on the workers, from one that waits
        for the driver (and is not asked again when training is over, because it has sent them).
        """
        if self.plan.applies_on_workers:
            if not last or self.state.uploader_left_out:
                self._coordinator.collect(COLLECT_SECONDS, check, self.state.ask_one_for_parameters)
            return self.state.uploaded
        if self._placement.on_driver:
            if last:
                self._slices[0].rule.finish(self._slices[0].parameters)
            return self._copied(self._slices[0])
        self._coordinator.collect(COLLECT_SECONDS, check, lambda: self.state.ask_for_parameters(last=last))
        return self.state.uploaded

    def recall(self, rank: int, check: Callable[[], None] | None = None) -> Vector:
        """The parameters that a worker kept when a lap began, while it listens."""
        self._coordinator.collect(COLLECT_SECONDS, check, lambda: self.state.recall_parameters(rank))
        return self.state.uploaded

    @property
    def rule(self) -> Rule | None:
        """The rule, where parameters and rule are here; nobody else may be using it when it is asked for its state."""
        return None if self.plan.applies_on_workers or not self._placement.on_driver else self._slices[0].rule

    def tell_at_start(self, *, learning_rate: float | None, traces_losses: bool) -> None:
        """What every worker is told with START; set before the first one is ready."""
        self.state.start_facts = Start(learning_rate=learning_rate, traces_losses=traces_losses)

    def start(self, ranks: Iterable[int], saves: SavePoints | None = None) -> None:
        """Let training begin, where it begins for all at once, for the ranks that have rows."""
        expected = frozenset(ranks)
        points = None if saves is None or not self.plan.synchronous else saves.to_json()
        self.state.start_facts = replace(self.state.start_facts, saves=points)
        for each in self._slices:
            each.state.saves = SavePoints.from_json(points)
            self._tell(each, lambda each=each: each.state.expect(expected))  # type: ignore[misc]  # bound for each
        hosted = self._placement.on_workers and self._placement.on_slices
        if hosted and self.plan.synchronous and self.plan.compression is None:
            self._share_result(sorted(expected))
        common, bells = (None if region is None else region.offer for region in (self._common, self._bells))
        self._command(lambda: self.state.start(common, bells))

    def go(self, lap: int, *, learning_rate: float | None, last: bool) -> None:
        """Tell the workers to go on after a lap, or that it was the last."""
        self._command(lambda: self.state.go(lap, learning_rate, last=last))

    def announce_save(self, round_: int) -> None:
        """Have everyone save what they have before a round; those who are past it say that they missed it."""
        for each in self._slices:
            self._tell(each, lambda each=each: self._announced(each, round_))  # type: ignore[misc]  # bound for each
        self._command(lambda: self.state.save(round_))

    def save_slices(self) -> None:
        """Have the slices saved as they are, each at a moment of its own; they come as events."""
        if not self._placement.on_driver:
            self._command(lambda: self.state.save(0))
            return
        with self._still():
            kept = [each.keep() for each in self._slices]
        self._saved(0, _together(kept))

    def held(self) -> dict[int, tuple[int, list[Any]]]:
        """What each rank left here last: the round before which it had it, and the arrays."""
        return self.state.held()

    @property
    def saves(self) -> int:
        """How many slices a whole state consists of; none where the workers have all of it."""
        return 1 if self._placement.on_driver else len(self.state.slices)

    def contributed(self) -> dict[int, int]:
        """How many rows of each rank were applied, where the slices are here."""
        return {rank: rows for each in self._slices for rank, rows in each.state.contributed.items()}

    @property
    def signs(self) -> dict[int, int]:
        """How often each member was heard so far."""
        return dict(self.state.signs)

    @property
    def gone(self) -> set[int]:
        """The members that have said good-bye, or were left out; whoever reads events may not have come to it yet."""
        return {rank for rank, member in list(self.state.members.items()) if member.gone}

    @property
    def longest_silence(self) -> float:
        """For how many seconds this driver has said nothing to its members, at most: it stood still itself."""
        return self._coordinator.longest_silence

    def tally(self, rank: int) -> Tally | None:
        """What a member last said of itself."""
        return self.state.tally(rank)

    def incarnation(self, rank: int) -> int:
        """Which of its incarnations a member is now."""
        return self.state.members[rank].incarnation

    @property
    def missing(self) -> list[int]:
        """The ranks that the slices here wait for; another thread may be changing that."""
        return sorted({rank for each in self._slices for rank in each.state.missing})

    def leave_out(self, rank: int) -> None:
        """Go on without a rank, which is told so whenever it is heard again; the slices here know it on return."""
        for each in self._slices:
            done = threading.Event()
            self._tell(each, lambda each=each, done=done: _exclude(each, rank, done))  # type: ignore[misc]  # bound
            done.wait(_OBEY_SECONDS)
        self._command(lambda: self.state.leave_out(rank))

    def retire(self, rank: int) -> None:
        """A rank has trained to the end: nobody is held back by it, also where its own word to a slice was lost."""
        if self.plan.meet == "bounded":
            for each in self._slices:
                self._tell(each, lambda each=each: each.state.remove(rank))  # type: ignore[misc]  # bound for each
            self._command(lambda: self.state.retire(rank))

    def probe(self) -> None:
        """Ask every member where its threads are; the answers are events."""
        self._command(self.state.probe)

    def release(self) -> None:
        """Let those who host slices end."""
        self._command(self.state.release)

    def stop(self, reason: str) -> None:
        """End the exchange; every worker that is waiting or comes back is told why, while there is who tells it."""
        if self._coordinator.is_alive:
            self._command(lambda: self.state.stop(reason))

    @property
    def serves(self) -> bool:
        """Whether all threads that serve the job are alive."""
        return all(each.is_alive() for each in self._service_threads)

    def check(self) -> None:
        """Raise where a thread that serves the job has ended before the job."""
        dead = [each.name for each in self._service_threads if not each.is_alive()]
        if dead:
            raise ExchangeError(
                f"The thread {dead[0]!r} of the driver has ended, without which workers are not served. Look for its "
                "trace in the driver's log."
            )

    def _command(self, command: Callable[[], Iterable[Action]]) -> None:
        self._coordinator.command(command)

    def _share_result(self, ranks: list[int]) -> None:
        """Where everyone is on this host, one region holds the results of all slices, and another the bells."""
        if self.state.same_host(host_mark()):
            self._common = SharedVector.create(self._layout.size, self._layout.dtype)
            self._bells = Doorbells.create(ranks)

    def _bound(self, context: zmq.Context[zmq.Socket[bytes]]) -> Endpoint:
        endpoint = self._stack.enter_context(Endpoint(context, self._place, self._credentials))
        self._service_threads += endpoint.threads
        return endpoint

    def _serve_slices(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        """The slice on the driver, in threads and over ports of its own."""
        threads = min(_HOGWILD_THREADS, self._workers) if self.plan.meet == "hogwild" else 1
        if self._ports is not None:
            threads = min(threads, self._ports[1] - self._ports[0])  # one is the coordinator's
        for server in self._slice_servers([self._bound(context) for _ in range(threads)]):
            thread = threading.Thread(target=server.serve, args=(self._ended,), name="keraunos-slice", daemon=True)
            thread.start()
            self._service_threads.append(thread)
            self._stack.callback(thread.join)
            self._stack.callback(self._ended.set)

    def _slice_servers(self, endpoints: list[Endpoint]) -> list[SliceServer]:
        whole = Slice(self._layout, 0, self._layout.size)
        shared: dict[str, Any] = {"on_failure": self._fail, "on_save": self._saved}
        initial = None if self.plan.applies_on_workers else self._initial
        if self.plan.meet == "hogwild":
            initial = np.array(self._initial)
            shared["rule"] = make_rule(self.plan, whole, self._workers)
        for index, endpoint in enumerate(endpoints):
            self._slices.append(SliceServer(self.plan, whole, self._workers, initial, endpoint, **shared))
            if self._standing is not None:
                self._slices[-1].go_on_from(_portion(self._standing.slices[0], index, len(endpoints)))
        self.state.slices = [self._slices[0].place]
        self.state.alternatives = [server.place for server in self._slices]
        return self._slices

    def _tell(self, server: SliceServer, command: Callable[[], list[Any]]) -> None:
        server.command(command)
        if self._one_port:
            # The thread that does it sleeps until somebody rings.
            self._command(list)

    def _copied(self, server: SliceServer) -> Vector:
        """A copy that no contribution is half in, where contributions are applied whole."""
        whole = self.plan.meet not in {"synchronous", "hogwild"}
        with self._still() if whole else nullcontext():
            return np.array(server.parameters)

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Nobody applies anything in here: those who serve the slice wait, each between two contributions."""
        arrived, go_on = threading.Semaphore(0), threading.Event()

        def wait() -> list[Any]:
            arrived.release()
            go_on.wait()
            return []

        serving = [each for each in self._slices if each.failure is None]
        try:
            for each in serving:
                self._tell(each, wait)
            if not all(arrived.acquire(timeout=COLLECT_SECONDS) for _ in serving):
                raise ExchangeError(f"The parameters did not come to rest within {COLLECT_SECONDS:.0f} s to be saved.")
            yield
        finally:
            go_on.set()

    def _announced(self, server: SliceServer, round_: int) -> list[Any]:
        if round_ > server.state.open_round + 1:
            server.state.saves.announce(round_)
        else:
            self.events.put(Event(Missed(), FIRST_SERVER, round=round_))
        return []

    def _saved(self, round_: int, kept: Kept) -> None:
        """What the slice here is, as an event like what the hosts of others send."""
        self.events.put(Event(StateGiven(kept), FIRST_SERVER, kept.arrays, round_))

    def _fail(self, error: Exception) -> None:
        """The driver raises what ended a server here, as it would a worker's error."""
        cause = error.__cause__ or error
        stack = "".join(traceback.format_exception(error))
        failed = Failed(type(cause).__name__, str(error), stack, host="the driver")
        self.events.put(Event(failed, FIRST_SERVER))

    def _close_slices(self) -> None:
        for each in self._slices:
            each.close()


def _together(kept: list[Kept]) -> Kept:
    """What several servers of one slice are: one vector and one rule, and each its own ranks."""
    rounds = {rank: round_ for each in kept for rank, round_ in each.rounds.items()}
    contributed = {rank: rows for each in kept for rank, rows in each.contributed.items()}
    return Kept(rounds, contributed, sum(each.applied for each in kept), kept[0].arrays)


def _portion(kept: Kept, index: int, count: int) -> Kept:
    """What one of several servers of one slice goes on from: its own ranks; the first has the vector and the rule."""
    rounds, contributed = (
        {rank: value for rank, value in each.items() if rank % count == index}
        for each in (kept.rounds, kept.contributed)
    )
    first = index == 0
    return Kept(rounds, contributed, kept.applied if first else 0, kept.arrays if first else [])


def _exclude(server: SliceServer, rank: int, done: threading.Event) -> list[Any]:
    actions = server.state.exclude(rank)
    done.set()
    return list(actions)
