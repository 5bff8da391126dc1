"""The time of one synchronous round of ours between two workers on this machine; prints JSON.

    python benchmarks/keraunos_round.py --servers workers --sizes 100000 1000000 [--curve]

One of the contestants of benchmarks/exchange.py, and like the others a process of its own. Prints seconds per round
and size, as seen by rank 0: from handing over its contribution to having the new parameters.
"""

import argparse
import json

import keraunos


def keraunos_round(size, servers, curve, *, rounds, warm_up):
    """Seconds of each of `rounds` rounds of `size` float32 between two processes, after `warm_up` others.

    `servers` is "driver" or "workers"; `curve` encrypts, as between hosts, where loopback's PLAIN would do.
    """
    raise NotImplementedError("A round without a model is not there yet.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", choices=["driver", "workers"], required=True)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 25_000_000])
    parser.add_argument("--rounds", type=int, nargs="+", default=None, help="as many as sizes")
    parser.add_argument("--warm-up", type=int, default=3)
    arguments = parser.parse_args()
    rounds = arguments.rounds or [max(5, min(100, 100_000_000 // size)) for size in arguments.sizes]
    seconds = {
        str(size): keraunos_round(size, arguments.servers, arguments.curve, rounds=count, warm_up=arguments.warm_up)
        for size, count in zip(arguments.sizes, rounds, strict=True)
    }
    print(json.dumps({"seconds": seconds, "version": keraunos.__version__}))


if __name__ == "__main__":
    main()
