"""One rank's way through its training: epochs, laps, rounds and steps, and where it is on it. Runs on both sides.

All of it follows from the schedule, the plan and the rows, so that a rank that was lost finds its place again from
the number of rounds it has taken part in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keraunos.job.schedule import Schedule
from keraunos.job.training_job import TrainingJob


@dataclass(frozen=True)
class Leg:
    """A lap as it is to be run: steps `first` up to `stop` of an epoch.

    Attributes:
        number: which lap of the training it is; `index` says which of its epoch. All are counted from 0.
        step: how many steps of the training come before it.
        rounds: how many rounds its steps make; the last may be short.
        ends_epoch: whether the epoch is whole after it.
        final: whether the training is over after it.
    """

    number: int
    epoch: int
    index: int
    first: int
    stop: int
    step: int
    rounds: int
    ends_epoch: bool
    final: bool


class Course:
    """The way of a rank whose epochs have `epoch_steps` steps; `every` is the length of its rounds."""

    def __init__(self, schedule: Schedule, every: int | str, epoch_steps: int) -> None:
        self.epoch_steps = epoch_steps
        self.steps = schedule.epochs * epoch_steps if schedule.steps is None else schedule.steps
        self._lap = min(schedule.lap or epoch_steps, epoch_steps)
        self.every = self._lap if every == "epoch" else min(int(every), self._lap)
        if not epoch_steps:
            # Rows to validate on are all it has: an epoch is a lap without a step.
            self.steps = 0
            self.epochs = schedule.epochs if schedule.steps is None else 1
            self.laps, self._laps_an_epoch = self.epochs, 1
            return
        self._laps_an_epoch = _parts(epoch_steps, self._lap)
        self._rounds_a_lap = _parts(self._lap, self.every)
        whole, rest = divmod(self.steps, epoch_steps)
        self.epochs = whole + (1 if rest else 0)
        self.laps = whole * self._laps_an_epoch + _parts(rest, self._lap)

    @classmethod
    def of(cls, job: TrainingJob, rows: Mapping[int, int], rank: int) -> Course:
        """The way of a rank, by the rows that each rank trains on.

        A synchronous round needs everyone, so all ranks then take as many steps as the one with the most.
        """
        counted = rows if job.exchange.synchronous else {rank: rows[rank]}
        steps = max(job.schedule.steps_of(count, each, job.workers) for each, count in counted.items())
        return cls(job.schedule, job.exchange.every, steps)

    def leg(self, number: int) -> Leg:
        """The lap of that number."""
        epoch, index = divmod(number, self._laps_an_epoch)
        first = index * self._lap
        left = self.steps - epoch * self.epoch_steps
        stop = min(first + self._lap, self.epoch_steps, left)
        return Leg(
            number=number,
            epoch=epoch,
            index=index,
            first=first,
            stop=stop,
            step=epoch * self.epoch_steps + first,
            rounds=_parts(stop - first, self.every),
            ends_epoch=stop == self.epoch_steps,
            final=number + 1 == self.laps,
        )

    def place(self, rounds: int) -> tuple[int, int]:
        """Where a rank is after so many rounds: how many laps are behind it, and how many rounds of the next."""
        if not self.epoch_steps:
            return 0, 0
        last = self.epoch_steps - (self._laps_an_epoch - 1) * self._lap
        rounds_an_epoch = (self._laps_an_epoch - 1) * self._rounds_a_lap + _parts(last, self.every)
        epochs, rest = divmod(rounds, rounds_an_epoch)
        index = min(rest // self._rounds_a_lap, self._laps_an_epoch - 1)
        number, done = epochs * self._laps_an_epoch + index, rest - index * self._rounds_a_lap
        if number + 1 == self.laps and done == self.leg(number).rounds:
            # The training may end within a lap.
            return number + 1, 0
        return number, done

    def rows(self, an_epoch: int, a_step: int) -> int:
        """How many rows a rank reads on its way that reads so many in an epoch, and in a step while it has some."""
        whole, rest = divmod(self.steps, max(1, self.epoch_steps))
        return whole * an_epoch + min(an_epoch, rest * a_step)


def _parts(length: int, part: int) -> int:
    return -(-length // max(1, part))
