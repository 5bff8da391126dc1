"""Memory that ran out, in words that help. Runs on workers; `after_kill` on the driver."""

from __future__ import annotations

import re

from keraunos.errors import KeraunosError
from keraunos.job.training_job import TrainingJob
from keraunos.worker import resources

# Frameworks have errors of their own for it, and some no type for it at all.
_WORDS = re.compile(r"RESOURCE_EXHAUSTED|out of memory|OOM when allocating|can't allocate memory", re.IGNORECASE)
# Spark's and cluster managers' ways to say that a process was killed, or went without a word.
_KILLED = re.compile(
    r"exit(ed)?( code|Code| status|ed with code)?:? ?137|OOMKilled|exceeding (physical |virtual )?memory limits|"
    r"running beyond (physical|virtual) memory|Python worker exited unexpectedly|java\.lang\.OutOfMemoryError|SIGKILL",
    re.IGNORECASE,
)
_ADVICE = (
    "Lower `memoryBudget` or `batchSize`, let fewer workers (`numWorkers`) share a host, or give executors more memory "
    "(spark.executor.memoryOverhead, or spark.executor.pyspark.memory)."
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, be it a framework's."""
    if isinstance(error, KeraunosError):
        return False
    return isinstance(error, MemoryError) or (isinstance(error, Exception) and bool(_WORDS.search(str(error))))


def explained(error: BaseException, job: TrainingJob | None, rank: int, workers_on_host: int) -> BaseException:
    """The error itself, or, where memory ran out, one that says what asks for it and what to lower."""
    if job is None or not is_out_of_memory(error):
        return error
    asked = next(iter(str(error).strip().splitlines()), "")[:300] or f"{type(error).__name__}, without a figure"
    budget = resources.memory_budget(job.memory_budget, workers_on_host)
    batch = job.schedule.batch_of(rank, job.workers)
    told = MemoryError(
        f"The worker ran out of memory. Expected: room for up to {budget} bytes of rows (`memoryBudget`), the model, "
        f"and batches of {batch} rows (`batchSize`), beside {workers_on_host - 1} other workers on the host. "
        f"Received: {asked}. {_ADVICE}"
    )
    told.__cause__ = error
    return told


def after_kill(text: str) -> str:
    """What to add to the news that a process has ended, where it was killed or said nothing."""
    if not _KILLED.search(text):
        return ""
    return f" A process that is killed, or ends without a word, has most often run out of memory. {_ADVICE}"
