"""Functions as single Spark tasks, as many at once as there are slots. Runs on the driver.

Each is a separate Spark job, so that its result is fetched as soon as it ends.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from keraunos.launch import spark as launch
from keraunos.launch.gang import ledger_of
from keraunos.session.session import Session

Task = Callable[[Iterator[int]], Iterator[Any]]
# What `TaskPool.threads` returns: a number of threads in, a context with a function that starts a call in one of them.
Threads = Callable[[int], AbstractContextManager[Callable[..., Future[Any]]]]


def run_in_turn(
    threads: Threads,
    count: int,
    at_once: int,
    *,
    may_start: Callable[[int], bool],
    call: Callable[[int], Callable[[], Any]],
    take: Callable[[Any], None],
) -> None:
    """Make calls number 0, 1, 2 … in threads, some at a time, and take what each returns as soon as it does.

    Args:
        threads: `TaskPool.threads`.
        count: how many calls.
        at_once: how many may run at the same time.
        may_start: whether a call of that number can be made yet; true for the next one whenever nothing runs.
        call: the call of that number, made when it starts.
        take: called, in this thread, with what a call returned. What a call raises is raised here.
    """
    running: set[Future[Any]] = set()
    started = 0
    with threads(at_once) as start:
        while started < count or running:
            while started < count and len(running) < at_once and may_start(started):
                running.add(start(call(started)))
                started += 1
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                take(each.result())


class TaskPool:
    """Runs tasks under one tag; `cancel` ends those that still run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._slots = session.slots()
        self._tag = f"keraunos-{uuid.uuid4().hex}"

    @property
    def slots(self) -> int:
        """How many tasks can run at once."""
        return self._slots

    def run(self, task: Task, backend: str) -> list[Any]:
        """Returns the result of a function in a task, in a Python worker for `backend`; any thread may call this.

        It is called with an iterator over a single number, which has no meaning.
        """
        with ledger_of(self._session.application).hold(1, self._slots):
            self._session.add_tag(self._tag)
            try:
                with launch.worker_environment(self._session, backend):
                    rdd = self._session.pinned(self._session.parallelize([0], 1).mapPartitions(task))
                return list(rdd.collect())
            finally:
                self._session.remove_tag(self._tag)

    @contextmanager
    def threads(self, count: int) -> Iterator[Callable[..., Future[Any]]]:
        """Yields a function that calls another in one of this many threads, for `run`; on exit, ends running calls."""
        pool: Executor = ThreadPoolExecutor(count, thread_name_prefix="keraunos-trial")
        try:
            yield lambda function, *arguments: pool.submit(self._session.inherited(function), *arguments)
        finally:
            self.cancel()
            pool.shutdown(cancel_futures=True)

    def cancel(self) -> None:
        """End the tasks that still run."""
        self._session.cancel(self._tag)
