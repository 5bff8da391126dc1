"""How long a lost worker is away, against how long a worker takes from its start to its first step.

A standalone Spark of two hosts on this machine; each repeat has a driver of its own, so that no Python worker is warm.
The process of rank 1 is killed in the middle of the fit; Spark starts the task again. Both times end with the next word
of the rank's progress, which it gives four times a second.

    python benchmarks/recovery.py --repeats 5
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.clusters import processes
from tests.clusters.drivers import ENDS, Driver
from tests.clusters.fit_spec import FitSpec
from tests.clusters.hosts import on_loopback
from tests.clusters.standalone import StandaloneCluster

RANK = 1
PATIENCE = 120.0
KILL_AFTER_EPOCH = 10
PARAMS = {"epochs": 60, "batchSize": 8, "exchange": "allreduce"}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    starts, recoveries = [], []
    with tempfile.TemporaryDirectory() as name, StandaloneCluster(Path(name), on_loopback(2)) as cluster:
        for repeat in range(options.repeats):
            start, recovery = _measure(cluster, f"repeat-{repeat}")
            starts.append(start)
            recoveries.append(recovery)
            print(f"start to first step {start:.1f} s, killed to next step {recovery:.1f} s: {recovery / start:.2f}")
    start, recovery = statistics.median(starts), statistics.median(recoveries)
    print(
        f"medians: {start:.1f} s, {recovery:.1f} s; recovery / start to first step = {recovery / start:.2f} (goal < 3)"
    )


def _measure(cluster: StandaloneCluster, name: str) -> tuple[float, float]:
    with Driver(cluster, name) as driver:
        driver.fit(FitSpec(name, params=PARAMS, slots=2))
        worker = processes.until(lambda: cluster.worker(RANK), PATIENCE, f"worker {RANK}")
        start = _next_step(driver, name, since=0.0) - _started_at(worker)
        driver.wait_for("lap", fit=name, epoch=KILL_AFTER_EPOCH, patience=PATIENCE)
        killed = time.monotonic()
        worker.send(signal.SIGKILL)
        back = driver.wait_for("heard", fit=name, kind="hello", rank=RANK, since=killed, patience=PATIENCE)
        recovery = _next_step(driver, name, since=back["at"]) - killed
        event = driver.wait_for(*ENDS, fit=name, patience=PATIENCE)
        if event["event"] != "finished":
            raise SystemExit(f"The fit did not finish: {event}")
        driver.leave(PATIENCE)
    processes.await_gone(cluster.members(), PATIENCE)
    return start, recovery


def _next_step(driver: Driver, fit: str, *, since: float) -> float:
    """When the rank next told of its progress."""
    told = driver.wait_for("heard", fit=fit, kind="report", rank=RANK, since=since, patience=PATIENCE)
    return float(told["at"])


def _started_at(process: processes.Process) -> float:
    """When a process was started, on the monotonic clock."""
    ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - since_boot


if __name__ == "__main__":
    main()
