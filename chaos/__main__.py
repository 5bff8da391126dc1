"""Disturbs real fits and tells what came of them; the exit status is 1 where something is not as it should be.

    python -m chaos --runs 60 --seed 1 --minutes 60
    python -m chaos --quick

Every run is a line in OUT/runs.jsonl as soon as it is over; the table is OUT/table.md. The logs of a run that is not as
it should be lie in OUT/run-N.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from chaos.disturbed import OutOfTime
from chaos.records import Record, fill, table
from chaos.runs import Runs, can_mount
from chaos.scenarios import (
    DISK,
    DRIVER,
    EXECUTOR,
    PARTITION,
    SERVER,
    STAGED,
    WITHOUT_RANK,
    WORKER,
    Fault,
    Scenario,
    draw,
)
from keraunos import KerasClassifier
from tests.clusters.fit_spec import TRAIN
from tests.clusters.hosts import can_make_networks, on_loopback, on_networks

QUICK_RUNS, QUICK_MINUTES = 14, 10.0
# What it takes to end the last run and the cluster in time.
_CLOSING_SECONDS = 60.0


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for."""
    options = _options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    deadline = time.monotonic() + 60 * options.minutes - _CLOSING_SECONDS
    options.out.mkdir(parents=True, exist_ok=True)
    lines = options.out / "runs.jsonl"
    lines.write_text("")
    records: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        networks = can_make_networks()
        hosts = stack.enter_context(on_networks(2, folder)) if networks else on_loopback(2)
        kinds = _kinds(networks=networks, mounts=can_mount(folder))
        runs = stack.enter_context(Runs(folder, hosts, deadline, options.out))
        for scenario in draw(options.runs, options.seed, kinds):
            if options.only and scenario.number not in options.only:
                continue
            try:
                record = runs.run(scenario)
            except OutOfTime:
                print(f"Out of time after {len(records)} of {options.runs} runs.")
                break
            records.append(record)
            with lines.open("a") as file:
                file.write(record.to_line() + "\n")
            _tell(scenario, record)
    written = table(records)
    (options.out / "table.md").write_text(written, encoding="utf-8")
    if options.document is not None:
        fill(options.document, written)
    print(f"\n{written}")
    return 1 if any(record.problems for record in records) or not records else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60, help="how many runs")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--minutes", type=float, default=60.0, help="end by then, however many runs there were")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs within {QUICK_MINUTES:.0f} minutes")
    parser.add_argument("--only", type=int, nargs="*", default=[], help="only these of the runs, by number")
    parser.add_argument("--out", type=Path, default=Path("build/chaos"), help="the folder for what was found")
    parser.add_argument("--document", type=Path, help="a document whose table is to be replaced by this one")
    options = parser.parse_args(arguments)
    if options.quick:
        options.runs, options.minutes = QUICK_RUNS, QUICK_MINUTES
    return options


def _kinds(*, networks: bool, mounts: bool) -> list[str]:
    """The faults that can be made here, and that the engine knows of."""
    checkpoints = hasattr(KerasClassifier, "checkpointDir")
    if not checkpoints:
        print("Drivers are not killed and disks not filled: estimators have no checkpointDir.")
    if not networks:
        print("No host is cut off: networks cannot be made here (that needs root and `ip`).")
    kinds = [WORKER, EXECUTOR, SERVER, *STAGED]
    kinds += [PARTITION] if networks else []
    kinds += [DRIVER] if checkpoints else []
    return kinds + ([DISK] if checkpoints and mounts else [])


def _tell(scenario: Scenario, record: Record) -> None:
    faults = ", ".join(_described(fault) for fault in scenario.faults)
    print(
        f"run {scenario.number}: {scenario.plan}, servers={scenario.servers!r}, "
        f"{'shuffled' if scenario.shuffled else 'direct'}; {faults}: {record.outcome} in {record.seconds:.0f} s"
        f"{'; NOT AS IT SHOULD BE: ' + '; '.join(record.problems) if record.problems else ''}"
        f"{'; ' + record.message[:300] if record.message else ''}",
        flush=True,
    )


def _described(fault: Fault) -> str:
    when = f"after epoch {fault.epoch}" if fault.stage == TRAIN else f"at {fault.stage}"
    lasting = f" for {fault.seconds:.0f} s" if fault.seconds else ""
    whom = "" if fault.kind in WITHOUT_RANK else f" {fault.rank}"
    return f"{fault.label}{whom}{lasting} {when}"


if __name__ == "__main__":
    sys.exit(main())
