"""What is checked of workers when they join and when all are ready. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keraunos.errors import ClusterError, DataError
from keraunos.exchange.coordination import Prepared
from keraunos.exchange.message_parts import ShardFacts
from keraunos.exchange.messages import Hello
from keraunos.job.training_job import TrainingJob
from keraunos.worker.loop import versions

Facts = Mapping[int, ShardFacts]

_SKEW = 2.0


def check_versions(hello: Hello) -> None:
    """Refuse a worker that would not understand the driver, or compute as it does."""
    ours, theirs = versions(), hello.versions
    differing = [f"{name} {theirs.get(name)} (driver: {ours[name]})" for name in ours if theirs.get(name) != ours[name]]
    if differing:
        raise ClusterError(
            f"The executor on {hello.host} has other versions than the driver: {', '.join(differing)}. "
            "Install the same ones everywhere, or ship one environment with spark.archives."
        )


def check_rows(rank: int, prepared: Prepared, shard: ShardFacts, ready: Facts, saved: Mapping[int, str]) -> None:
    """Refuse rows that are not those a rank had before, or saved, or that differ in shape from another's."""
    if prepared.changed:
        raise DataError(
            f"Worker {rank} was lost, and its rows came back different, so that it cannot continue where it "
            "stood. The DataFrame is not deterministic (a random function, an unordered limit, a changing source); "
            "write it out, or checkpoint() it, before `fit`."
        )
    if rank in saved and saved[rank] != shard.digest:
        raise DataError(
            f"The rows of worker {rank} are not those that the training was saved with, so that it cannot go "
            "on where it stood. Give `fit` the same rows in the same partitions (the DataFrame must be "
            "deterministic), or choose another checkpointDir."
        )
    first = next(iter(ready.values()), None)
    if first is not None and first.spec != shard.spec:
        raise DataError(
            "Rows have one shape and type on one worker and another on the next. Expected: "
            f"{_described(first)}. Received: {_described(shard)} on worker {rank}."
        )


def _described(shard: ShardFacts) -> Any:
    return None if shard.spec is None else shard.spec.to_json()


def check_all(job: TrainingJob, ready: Facts, warn: Callable[[str], None]) -> None:
    """Refuse rows of which none trains, or none validates; warn of uneven ones. For plans that need all at once."""
    if not job.needs_all_workers:
        return
    rows = {rank: each.rows for rank, each in ready.items()}
    if not sum(rows.values()):
        raise DataError("Every row is marked for validation, so there is none to train on. Check the indicator column.")
    wants_validation = job.columns.validation is not None or job.schedule.validation_split
    if wants_validation and not any(each.validation_rows for each in ready.values()):
        raise DataError(
            "There is no row to validate on. Expected at least one. Received: 0 rows. Look at the rows that were given "
            "for it, mark some in the indicator column, or raise `validationSplit`."
        )
    counts = [rows.get(rank, 0) for rank in range(job.workers)]
    if max(counts) > max(job.schedule.batch_of(0, job.workers), _SKEW * max(1, min(counts))):
        warn(
            f"Rows are spread unevenly over the workers ({min(counts)} to {max(counts)}), so some will wait for "
            f"others; call repartition({job.workers}) on the DataFrame before fit."
        )


def tell_left_out(job: TrainingJob, ready: Facts, warn: Callable[[str], None]) -> None:
    """Say how many rows an epoch leaves out because no whole batch holds them."""
    schedule = job.schedule
    rows = {rank: facts.rows for rank, facts in ready.items()}
    left_out = sum(count % schedule.batch_of(rank, job.workers) for rank, count in rows.items())
    if left_out and schedule.draws is None:
        warn(
            f"Every epoch leaves out {left_out} of {sum(rows.values())} rows, which fill no whole batch on their "
            "workers."
        )


def no_rows(job: TrainingJob) -> DataError:
    """Nobody has a row."""
    return DataError(
        "There are no rows to train on. Expected at least one. Received: 0 rows for "
        f"{job.workers} worker(s). Check the filters and joins before `fit`."
    )
