"""Training by a single worker within this process, without Spark and without another process. Runs anywhere.

The same worker loop, server and follower as on a cluster: the worker is a thread, and they meet over a socket file.
What a search does in a Spark task, and what small trainings may do on the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from keraunos.errors import DataError, ExchangeError, JobError
from keraunos.job.training_job import TrainingJob
from keraunos.launch.fit import Fit
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.hooks import Hooks
from keraunos.launch.training_result import TrainingResult
from keraunos.worker import loop


def fit(
    job: TrainingJob,
    rows: Any,
    *,
    custom_objects: Mapping[str, Any] | None = None,
    hooks: Sequence[Hooks] = (),
    listeners: Sequence[Any] = (),
    threads: int = 1,
) -> TrainingResult:
    """Train on all of `rows`, an Arrow table with the job's columns, and give the result."""
    if job.workers != 1 or job.placement.server_tasks:
        raise JobError(
            "A job within one process must have one worker, and no servers of their own. Received: "
            f"workers={job.workers!r}, servers={job.servers!r}."
        )
    if not rows.num_rows:
        raise DataError("There are no rows to train on. Expected at least one. Received: 0 rows.")
    with (
        FitEvents(job, listeners) as events,
        Fit.open(job, events, custom_objects=custom_objects, hooks=hooks, verbose=0) as opened,
        _WorkerThread(opened.connection, rows, custom_objects, threads) as worker,
    ):
        return opened.follow(worker)


class _WorkerThread:
    """The one worker; leaving the context waits for it, who has been told to stop by then."""

    def __init__(
        self, connection: Mapping[str, Any], rows: Any, custom_objects: Mapping[str, Any] | None, threads: int
    ) -> None:
        self._errors: list[BaseException] = []
        # Not pinned to a core: the affinity of a thread is not that of the process, which others will use again.
        seat = loop.Seat(rank=0, incarnation=0, threads=threads, pin=False)
        arguments = (seat, connection, rows.to_batches(), custom_objects)
        self._thread = threading.Thread(target=self._run, args=arguments, name="keraunos-worker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.join(timeout=30.0)

    def check(self) -> None:
        """Raise what the worker could not tell by itself."""
        if self._errors:
            raise self._errors[0]

    def ended(self) -> bool:
        """Whether it is over."""
        return not self._thread.is_alive()

    def advice(self) -> str:
        """What a user may do when it does not come."""
        return "Look for its error in the log."

    def preparing(self, seconds: float) -> bool:
        """Never: the rows are there before the workers are."""
        return False

    def abandon(self, rank: int) -> None:
        """Never asked for: there is no other worker to go on."""

    def _run(self, *arguments: Any) -> None:
        try:
            loop.run(*arguments)
        except ExchangeError:
            # The fit has ended, and whoever ended it has said why.
            return
        except BaseException as error:  # noqa: BLE001 - raised by the thread that follows the fit
            self._errors.append(error)
