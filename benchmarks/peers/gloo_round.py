"""The time of torch.distributed's all_reduce over gloo between two processes on this machine; prints JSON.

    python benchmarks/peers/gloo_round.py --sizes 100000 1000000

Runs in an environment with torch and needs nothing else. Prints seconds per round and size, as seen by rank 0.
"""

import argparse
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import multiprocessing


def worker(rank, store, sizes, rounds, warm_up, pin):
    if pin:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    seconds = {}
    for size, count in zip(sizes, rounds, strict=True):
        vector = torch.ones(size, dtype=torch.float32)
        taken = []
        for _ in range(warm_up + count):
            vector.fill_(1.0)
            dist.barrier()
            started = time.perf_counter()
            dist.all_reduce(vector)
            taken.append(time.perf_counter() - started)
        if float(vector.max()) != 2.0 or float(vector.min()) != 2.0:
            raise RuntimeError(f"all_reduce of {size} ones among two gave {vector}")
        seconds[str(size)] = taken[warm_up:]
    dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"seconds": seconds, "version": torch.__version__}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 25_000_000])
    parser.add_argument("--rounds", type=int, nargs="+", default=None, help="as many as sizes")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--pin", action="store_true", help="keep each process on a core of its own")
    arguments = parser.parse_args()
    rounds = arguments.rounds or [max(5, min(100, 100_000_000 // size)) for size in arguments.sizes]
    with tempfile.TemporaryDirectory() as folder:
        options = (f"{folder}/store", arguments.sizes, rounds, arguments.warm_up, arguments.pin)
        multiprocessing.spawn(worker, args=options, nprocs=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
