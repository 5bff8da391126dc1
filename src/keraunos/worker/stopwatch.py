"""What a worker does with its time: seconds of its own work, and of waiting for others. Runs on workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from keraunos.batch import Batch
from keraunos.exchange.client import Client


class Stopwatch:
    """Writes steps and the time of rounds into the client's tally.

    The steps of the first round are counted, but their time is left out: it compiles the model.
    """

    def __init__(self, client: Client, clock: Callable[[], float] = time.perf_counter) -> None:
        self._client = client
        self._clock = clock
        self._warm = False
        self._steps = 0

    def time(self, run: Callable[[Iterator[Batch]], int], batches: Iterator[Batch]) -> int:
        """Run a round over its batches and take its time; gives what the round gave."""
        client, tally = self._client, self._client.tally
        self._steps = 0
        began, waited = self._clock(), client.waited
        rows = run(self._counted(batches))
        took, waited = self._clock() - began, client.waited - waited
        tally.steps += self._steps
        if self._warm:
            tally.timed += self._steps
            tally.waited += waited
            tally.busy += max(0.0, took - waited)
        self._warm = True
        return rows

    def _counted(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            self._steps += 1
            yield batch
