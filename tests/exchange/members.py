"""A job of members that are driven directly: real server, real sockets, no model; each member in a thread."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from keraunos.batch import BatchSpec
from keraunos.errors import ExchangeError
from keraunos.exchange.client import Client
from keraunos.exchange.hosting import SliceHost, host_slice, slice_of
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.server import Server
from keraunos.exchange.slices import Slices
from keraunos.exchange.wire import Kind
from keraunos.job.placement import placement_of

SPEC = BatchSpec.from_json({"inputs": [[4], "float32"], "targets": None, "weighted": False})
FACTS = ShardFacts(rows=10, validation_rows=0, spec=SPEC, digest="", parts=1)
WAIT_SECONDS = 60


@dataclass
class Outcome:
    """What came of a job: each rank's results, round by round, the parameters at the end, what was not taken."""

    results: dict[int, list[np.ndarray]] = field(default_factory=dict)
    parameters: np.ndarray | None = None
    dropped: int = 0


class Job:
    """One job's plan and size; `run` trains it with what `contribute(rank, round)` gives: (values, rows) or None."""

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
        self.server_options = server

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
        with ExitStack() as stack:
            client = stack.enter_context(Client(connection, rank, self.incarnation, share_memory=self.share_memory))
            client.hello({})
            hosted = None
            if self.servers == "workers":
                host = stack.enter_context(SliceHost(client, self.plan, self.workers))
                start = client.ready(FACTS, host.address)
                hosted = self._host(client, host, start)
            else:
                start = client.ready(FACTS)
            slices = stack.enter_context(Slices(client, self.plan, self.layout, 1, start, hosted=hosted))
            self._rounds(slices, rank, outcome)
            slices.leave()
            client.done(wait=self.servers == "workers")
            client.bye()

    def _host(self, client, host, start):
        part = slice_of(start, client.rank, self.layout)
        initial = None if self.plan.applies_on_workers else self.initial[part.start : part.stop]
        server = host.begin(start, part, initial, thread=not self.plan.synchronous)
        if self.plan.synchronous and self.plan.compression is not None:
            client.attend(server.socket, server.pump)
        return server if self.plan.synchronous and self.plan.compression is None else None

    def _rounds(self, slices, rank, outcome):
        wants = not self.plan.synchronous
        first = slices.join(wants_parameters=wants)
        if wants or slices.first_needed:
            slices.parameters()
        for round_ in range(first, self.rounds):
            sent = self.contribute(rank, round_)
            if sent is None:
                slices.pass_round(round_)
            else:
                values, rows = sent
                slices.push(round_, values * np.float32(rows), (float(rows),), rows)
            result = slices.collect(round_)
            if self.keep_results:
                outcome.results[rank].append(np.array(result))

    def _follow(self, server, futures, outcome, while_training):
        needs_all = self.plan.waits or self.servers == "workers"
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
        while len(said) < self.workers:
            failed = next((each for each in futures if each.done() and each.exception() is not None), None)
            if failed is not None:
                failed.result()
            event = server.events.get(timeout=WAIT_SECONDS)
            if event.kind is Kind.FAILED:
                raise ExchangeError(str(event.said))
            if event.kind is kind and event.rank < self.workers:
                said.add(event.rank)
