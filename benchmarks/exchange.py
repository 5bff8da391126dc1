"""How long one synchronous round between two workers takes, beside gloo and Elephas on the same machine, in one run.

    benchmarks/peers/elephas.sh .venv-elephas
    python benchmarks/exchange.py --torch-python .venv-torch/bin/python --elephas-python .venv-elephas/bin/python
    python benchmarks/exchange.py --before ../a-checkout

A round of 0.1 M, 1 M and 25 M float32 on one machine: ours with the parameters in the driver and with a part of them
on each worker, through shared memory, over socket files without it, and over ports with CURVE; torch.distributed's
all_reduce over gloo, left to the scheduler and, as our workers are, kept on a core each; get_parameters and
update_parameters of one client against Elephas's HTTP and socket servers, at 1 M. Every contestant is a script that
runs in its own environment. Repeats alternate between them; figures are medians over all rounds. A contestant whose
environment is missing is named and left out. With `--before` the contestants are ours and those of another checkout.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SIZES = (100_000, 1_000_000, 25_000_000)
ELEPHAS_SIZE = 1_000_000


@dataclass
class Contestant:
    """A script, the sizes it is asked for, and the seconds it gave."""

    name: str
    command: list
    sizes: list
    seconds: dict = field(default_factory=dict)
    missing: str = ""
    sources: Path | None = None

    def run(self, timeout):
        """One repeat; a contestant that failed once is not asked again."""
        if self.missing or not self.sizes:
            return
        if not Path(self.command[0]).exists():
            self.missing = f"{self.command[0]} does not exist"
            return
        command = [*self.command, "--sizes", *map(str, self.sizes)]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout, check=False, env=self._environment()
            )
        except subprocess.TimeoutExpired:
            self.missing = f"took longer than {timeout} s"
            return
        if ended.returncode:
            self.missing = (ended.stderr.strip().splitlines() or ["it failed without a word"])[-1]
            return
        answer = json.loads(ended.stdout.strip().splitlines()[-1])
        for size, taken in answer["seconds"].items():
            self.seconds.setdefault(int(size), []).extend(taken)

    def _environment(self):
        return None if self.sources is None else os.environ | {"PYTHONPATH": str(self.sources)}

    def median(self, size):
        """The median in milliseconds, or None where nothing was measured."""
        taken = self.seconds.get(size)
        return statistics.median(taken) * 1e3 if taken else None


WAYS = {
    "workers": ("servers on the workers", ["--servers", "workers"]),
    "driver": ("server in the driver", ["--servers", "driver"]),
    "workers, sockets": ("servers on the workers, sockets", ["--servers", "workers", "--sockets"]),
    "driver, sockets": ("server in the driver, sockets", ["--servers", "driver", "--sockets"]),
    "workers, CURVE": ("servers on the workers, CURVE", ["--servers", "workers", "--curve"]),
    "driver, CURVE": ("server in the driver, CURVE", ["--servers", "driver", "--curve"]),
}


def of_checkout(way, checkout, sizes):
    """Ours, as it is in a checkout."""
    name, options = WAYS[way]
    command = [sys.executable, str(checkout / "benchmarks" / "keraunos_round.py"), *options]
    return Contestant(name, command, sizes, sources=checkout / "src")


def before_and_now(arguments):
    """Each way of ours twice, one behind the other."""
    found = {}
    for way in WAYS:
        found[f"{way}, before"] = of_checkout(way, arguments.before.resolve(), arguments.sizes)
        found[f"{way}, before"].name += ", before"
        found[way] = of_checkout(way, HERE.parent, arguments.sizes)
    return found


def contestants(arguments):
    sizes = arguments.sizes
    gloo = [arguments.torch_python, str(HERE / "peers" / "gloo_round.py")]
    elephas = [arguments.elephas_python, str(HERE / "peers" / "elephas_round.py")]
    at_elephas = [size for size in sizes if size == ELEPHAS_SIZE]
    ours = {way: of_checkout(way, HERE.parent, sizes) for way in WAYS}
    return {
        "workers": ours["workers"],
        "gloo": Contestant("gloo all_reduce", gloo, sizes),
        "gloo, pinned": Contestant("gloo all_reduce, a core each", [*gloo, "--pin"], sizes),
        "driver": ours["driver"],
        "http": Contestant("Elephas, HTTP server", [*elephas, "--server", "http"], at_elephas),
        "workers, CURVE": ours["workers, CURVE"],
        "workers, sockets": ours["workers, sockets"],
        "socket": Contestant("Elephas, socket server", [*elephas, "--server", "socket"], at_elephas),
        "driver, CURVE": ours["driver, CURVE"],
        "driver, sockets": ours["driver, sockets"],
    }


def print_times(entries, sizes):
    print(f"{'milliseconds a round, median (range)':<38}" + "".join(f"{size / 1e6:>25.1f} M" for size in sizes))
    for each in entries.values():
        cells = []
        for size in sizes:
            taken = [second * 1e3 for second in each.seconds.get(size, [])]
            cells.append(f"{statistics.median(taken):.2f} ({min(taken):.2f}-{max(taken):.2f})" if taken else "-")
        print(f"{each.name:<38}" + "".join(f"{cell:>27}" for cell in cells))
        if each.missing:
            print(f"    not measured: {each.missing}")


def print_goals(entries, sizes):
    print("\nratios, and the goals")
    for size in sizes:
        for gloo in ("gloo", "gloo, pinned"):
            judge(entries, size, "workers", gloo, limit=1.0)
        for way in ("sockets", "CURVE"):
            cost(entries, size, f"workers, {way}", "workers")
            cost(entries, size, f"driver, {way}", "driver")
    if ELEPHAS_SIZE in sizes:
        for placement in ("driver", "workers"):
            judge(entries, ELEPHAS_SIZE, placement, "http", limit=1 / 3)
            judge(entries, ELEPHAS_SIZE, placement, "socket", limit=1 / 10)


def judge(entries, size, one, other, limit):
    """Whether `one` takes at most `limit` of the time of `other`."""
    ours, theirs = entries[one].median(size), entries[other].median(size)
    title = f"{size / 1e6:>5.1f} M  {entries[one].name} against {entries[other].name}"
    if ours is None or theirs is None:
        print(f"{title:<80} not measured")
        return
    met = "met" if ours <= limit * theirs else "missed"
    goal = "goal at most 1.00 of its time" if limit == 1 else f"goal at least {1 / limit:.0f} x faster"
    print(f"{title:<80} {ours / theirs:.2f} of its time, {theirs / ours:.1f} x faster ({goal}: {met})")


def print_changes(entries, sizes):
    print("\nnow against before")
    for size in sizes:
        for way in WAYS:
            cost(entries, size, way, f"{way}, before")


def cost(entries, size, one, other):
    """What `one` adds to the time of `other`."""
    with_it, without = entries[one].median(size), entries[other].median(size)
    title = f"{size / 1e6:>5.1f} M  {entries[one].name}"
    if with_it is None or without is None:
        print(f"{title:<80} not measured")
        return
    print(f"{title:<80} {with_it / without:.2f} of {entries[other].name}, {with_it - without:+.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one repeat of one may take")
    parser.add_argument("--torch-python", default=".venv-torch/bin/python")
    parser.add_argument("--elephas-python", default=".venv-elephas/bin/python")
    parser.add_argument("--before", type=Path, help="a checkout of another version to compare ours with")
    arguments = parser.parse_args()
    entries = contestants(arguments) if arguments.before is None else before_and_now(arguments)
    for _ in range(arguments.repeats):
        for each in entries.values():
            each.run(arguments.timeout)
    print_times(entries, arguments.sizes)
    if arguments.before is None:
        print_goals(entries, arguments.sizes)
    else:
        print_changes(entries, arguments.sizes)


if __name__ == "__main__":
    main()
