"""A job of members that are driven directly: real server, real sockets, no model; each member in a thread."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from keraunos.batch import BatchSpec
from keraunos.errors import ExchangeError
from keraunos.exchange.client import Client
from keraunos.exchange.hosting import host_slice
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.server import Server
from keraunos.exchange.transports.registry import make_transport
from keraunos.exchange.wire import Kind
from keraunos.job.placement import placement_of

SPEC = BatchSpec.from_json({"inputs": [[4], "float32"], "targets": None, "weighted": False})
FACTS = ShardFacts(rows=10, validation_rows=0, spec=SPEC, digest="", parts=1)
WAIT_SECONDS = 60
LOOK_SECONDS = 0.2


@dataclass
class Holder:
    """As much of a learner as a transport asks for."""

    layout: object
    vector: np.ndarray

    def read(self):
        return self.vector.copy()

    def on_host(self, vector):
        return np.asarray(vector)


@dataclass
class Outcome:
    """What came of a job: each rank's results, round by round, what it began with, the parameters at the end, what was
    not taken.
    """

    results: dict[int, list[np.ndarray]] = field(default_factory=dict)
    first: dict[int, np.ndarray | None] = field(default_factory=dict)
    parameters: np.ndarray | None = None
    dropped: int = 0


class Job:
    """One job's plan and size; `run` trains it with what `contribute(rank, round)` gives: (values, rows) or None.

    A rank in `rounds_of` leaves after so many rounds. `before_share(rank)` is called by its transport, and
    `after_round(transport, rank, round, result)` when it has collected. `ended` says what ended a rank, or None.
    """

    def __init__(
        self,
        plan,
        layout,
        initial,
        contribute,
        *,
        workers=2,
        rounds=3,
        servers="driver",
        share_memory=True,
        keep_results=True,
        incarnation=1,
        rounds_of=None,
        wants_parameters=None,
        before_share=None,
        after_round=None,
        **server,
    ):
        self.plan = plan
        self.layout = layout
        self.initial = initial
        self.contribute = contribute
        self.workers = workers
        self.rounds = rounds
        self.servers = servers
        self.share_memory = share_memory
        self.keep_results = keep_results
        self.incarnation = incarnation
        self.rounds_of = rounds_of or {}
        self.wants_parameters = not plan.synchronous if wants_parameters is None else wants_parameters
        self.before_share = before_share
        self.after_round = after_round
        self.server_options = server
        self.ended = {}

    def run(self, while_training=None):
        """Train to the end; `while_training(server)` runs in this thread while the members do."""
        outcome = Outcome({rank: [] for rank in range(self.workers)})
        with ExitStack() as stack:
            placement = placement_of(self.servers)
            server = stack.enter_context(
                Server(self.plan, self.workers, self.layout, self.initial, placement=placement, **self.server_options)
            )
            hosts = placement.server_tasks
            pool = stack.enter_context(ThreadPoolExecutor(self.workers + hosts))
            futures = [pool.submit(host_slice, server.connection, index, 1, {}) for index in range(hosts)]
            futures += [pool.submit(self.work, server.connection, rank, outcome) for rank in range(self.workers)]
            try:
                self._follow(server, futures, outcome, while_training)
            except BaseException:
                server.stop("the test failed")
                raise
            for future in futures:
                future.result(timeout=WAIT_SECONDS)
            outcome.dropped = server.dropped
        return outcome

    def work(self, connection, rank, outcome):
        """One rank from its first word to its last."""
        try:
            self._work(connection, rank, outcome)
        except BaseException as error:
            self.ended[rank] = error
            raise
        self.ended[rank] = None

    def _work(self, connection, rank, outcome):
        with ExitStack() as stack:
            client = stack.enter_context(Client(connection, rank, self.incarnation, share_memory=self.share_memory))
            client.hello({})
            placement = placement_of(self.servers)
            transport = stack.enter_context(make_transport(client, self.plan, placement, self.workers))
            start = client.ready(FACTS, transport.address)
            transport.open(start, Holder(self.layout, self.initial), 1)
            self._rounds(transport, rank, outcome)
            transport.leave()
            client.done(wait=transport.serves)
            client.bye()

    def _rounds(self, transport, rank, outcome):
        first, outcome.first[rank] = transport.join(wants_parameters=self.wants_parameters)
        if self.before_share is not None:
            transport.before_share = partial(self.before_share, rank)
        for round_ in range(first, self.rounds_of.get(rank, self.rounds)):
            sent = self.contribute(rank, round_)
            if sent is None:
                transport.pass_round(round_)
            else:
                values, rows = sent
                transport.contribute(round_, values * np.float32(rows), (float(rows),), rows)
            result = transport.collect(round_)
            if self.keep_results:
                outcome.results[rank].append(np.array(result))
            if self.after_round is not None:
                self.after_round(transport, rank, round_, result)

    def _follow(self, server, futures, outcome, while_training):
        needs_all = placement_of(self.servers).needs_all_workers(self.plan)
        if needs_all:
            self._await(server, futures, Kind.READY)
            server.start(range(self.workers))
        disturbed = None
        if while_training is not None:
            disturbed = threading.Thread(target=while_training, args=(server,))
            disturbed.start()
        try:
            self._await(server, futures, Kind.DONE)
        finally:
            if disturbed is not None:
                disturbed.join()
        if not self.plan.applies_on_workers:
            outcome.parameters = np.array(server.parameters())
        server.release()

    def _await(self, server, futures, kind):
        """Until every worker has said it; what a member raised is raised here."""
        said = set()
        deadline = time.monotonic() + WAIT_SECONDS
        while len(said) < self.workers:
            failed = next((each for each in futures if each.done() and each.exception() is not None), None)
            if failed is not None:
                failed.result()
            try:
                event = server.events.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                assert time.monotonic() < deadline, f"{sorted(said)} of {self.workers} workers have said {kind.name}"
                continue
            deadline = time.monotonic() + WAIT_SECONDS
            if event.kind is Kind.FAILED:
                raise ExchangeError(str(event.said))
            if event.kind is kind and event.rank < self.workers:
                said.add(event.rank)
