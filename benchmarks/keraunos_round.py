"""The time of one synchronous round of ours between two workers on this machine; prints JSON.

    python benchmarks/keraunos_round.py --servers workers --sizes 100000 1000000 [--curve] [--sockets]

One of the contestants of benchmarks/exchange.py, and like the others a process of its own. Prints seconds per round
and size, as seen by rank 0: from handing over its contribution to having the mean of both. With `--sockets` the
workers do not share memory, as on two hosts; CURVE, which is for two hosts, comes with it.
"""

import argparse
import json
import multiprocessing
import os
import time

import numpy as np

import keraunos
from keraunos.batch import BatchSpec
from keraunos.exchange.client import Client
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.server import Server
from keraunos.exchange.transports.slices import Slices
from keraunos.exchange.wire import Kind
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import placement_of
from keraunos.parameters import Layout

SPEC = {"inputs": [[4], "float32"], "targets": None, "weighted": False}
PLAN = ExchangePlan.named("allreduce")


def keraunos_round(size, servers, *, curve, sockets, rounds, warm_up):
    """Seconds of each of `rounds` rounds of `size` float32 between two processes, after `warm_up` others.

    `servers` is "driver" or "workers"; `curve` uses a port and encrypts, as between hosts, where a socket file would
    do; `sockets` keeps the workers from sharing memory.
    """
    layout = Layout(("w",), ((size,),), trainable=1)
    spawn = multiprocessing.get_context("spawn")
    gate, seconds = spawn.RawArray("l", 2), spawn.Queue()
    with Server(
        PLAN,
        2,
        layout,
        np.zeros(size, np.float32),
        placement=placement_of(servers),
        host="127.0.0.1" if curve else None,
    ) as server:
        counts = (rounds, warm_up)
        processes = [
            spawn.Process(
                target=work, args=(rank, server.connection, servers, size, curve, sockets, counts, gate, seconds)
            )
            for rank in range(2)
        ]
        for process in processes:
            process.start()
        ready = 0
        while ready < 2:
            ready += server.events.get(timeout=60).kind is Kind.READY
        server.start([0, 1])
        taken = seconds.get(timeout=300)
        server.release()
        for process in processes:
            process.join(timeout=60)
            process.kill()
    return taken


def work(rank, connection, servers, size, curve, sockets, counts, gate, seconds):
    """One worker: join, and contribute to every round."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % os.cpu_count()]})
    layout = Layout(("w",), ((size,),), trainable=1)
    with Client(connection, rank, 1, share_memory=not (sockets or curve)) as client:
        client.hello({})
        facts = ShardFacts(10, 0, BatchSpec.from_json(SPEC), "", 1)
        with Slices(client, PLAN, placement_of(servers), 2) as slices:
            slices.open(client.ready(facts, slices.address), Vectors(layout), 1)
            taken = exchange(rank, slices, size, counts, gate)
            if rank == 0:
                seconds.put(taken)
            slices.leave()
            client.done(wait=True)
        client.bye()


class Vectors:
    """As much of a learner as slices ask for."""

    def __init__(self, layout):
        self.layout = layout

    def on_host(self, vector):
        return vector


def exchange(rank, slices, size, counts, gate):
    """The rounds themselves; both start a round at the same moment, as far as two processes can.

    Not the first: a worker that has joined serves the other, who is still joining, while it waits for a result.
    """
    rounds, warm_up = counts
    slices.join(wants_parameters=False)
    values = np.empty(size, np.float32)
    taken = []
    for round_ in range(warm_up + rounds):
        values.fill(rank + round_)
        if round_:
            meet(rank, round_, gate)
        started = time.perf_counter()
        slices.contribute(round_, values, (1.0,), 1)
        result = slices.collect(round_)
        taken.append(time.perf_counter() - started)
        if result[0] != round_ + 0.5 or result[-1] != round_ + 0.5:
            raise RuntimeError(f"the mean of {round_} and {round_ + 1} is not {result[0]}")
    return taken[warm_up:]


def meet(rank, round_, gate):
    """Wait until the other is here, too."""
    gate[rank] = round_ + 1
    while gate[1 - rank] < round_ + 1:
        os.sched_yield()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", choices=["driver", "workers"], required=True)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--sockets", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 25_000_000])
    parser.add_argument("--rounds", type=int, nargs="+", default=None, help="as many as sizes")
    parser.add_argument("--warm-up", type=int, default=3)
    arguments = parser.parse_args()
    rounds = arguments.rounds or [max(5, min(100, 100_000_000 // size)) for size in arguments.sizes]
    seconds = {
        str(size): keraunos_round(
            size,
            arguments.servers,
            curve=arguments.curve,
            sockets=arguments.sockets,
            rounds=count,
            warm_up=arguments.warm_up,
        )
        for size, count in zip(arguments.sizes, rounds, strict=True)
    }
    print(json.dumps({"seconds": seconds, "version": keraunos.__version__}))


if __name__ == "__main__":
    main()
