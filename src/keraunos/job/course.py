"""One rank's way through its training: epochs, laps, rounds and steps, and where it is on it. Runs on both sides.

All of it follows from the schedule, the plan and the rows, so that a rank that was lost finds its place again from
the number of rounds it has taken part in.
"""

from __future__ import annotations

import math
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
    """The way of a rank whose epochs have `epoch_steps` steps; `every` is the length of its rounds.

    A lap ends where an epoch does, and after every `Schedule.lap` steps of the training, whatever epoch they are in.
    """

    def __init__(self, schedule: Schedule, every: int | str, epoch_steps: int) -> None:
        self.epoch_steps = epoch_steps
        self._first_epoch = schedule.first_epoch
        to_do = schedule.epochs - schedule.first_epoch
        self.steps = to_do * epoch_steps if schedule.steps is None else schedule.steps
        self._lap = schedule.lap or epoch_steps
        longest = min(self._lap, epoch_steps)
        self.every = longest if every == "epoch" else min(int(every), longest)
        if not epoch_steps:
            # Rows to validate on are all it has: an epoch is a lap without a step.
            self.steps = 0
            self.laps = to_do if schedule.steps is None else 1
            self.epochs = self._first_epoch + self.laps
            return
        self.epochs = self._first_epoch + _parts(self.steps, epoch_steps)
        whole = self._ends(self.steps)
        self.laps = whole if self._end(whole) == self.steps else whole + 1

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
        if not self.epoch_steps:
            return Leg(
                number, self._first_epoch + number, 0, 0, 0, 0, 0, ends_epoch=True, final=number + 1 == self.laps
            )
        start, stop = self._end(number), min(self._end(number + 1), self.steps)
        whole = start // self.epoch_steps
        before = whole * self.epoch_steps
        return Leg(
            number=number,
            epoch=self._first_epoch + whole,
            index=number - self._ends(before),
            first=start - before,
            stop=stop - before,
            step=start,
            rounds=_parts(stop - start, self.every),
            ends_epoch=stop - before == self.epoch_steps,
            final=number + 1 == self.laps,
        )

    def place(self, rounds: int) -> tuple[int, int]:
        """Where a rank is after so many rounds: how many laps are behind it, and how many rounds of the next."""
        if not self.epoch_steps:
            return 0, 0
        if self.every == 1:
            laps = self._ends(rounds) if rounds < self.steps else self.laps
            return laps, rounds - self._end(laps) if rounds < self.steps else 0
        for number in range(self.laps):
            length = self.leg(number).rounds
            if rounds < length:
                return number, rounds
            rounds -= length
        return self.laps, rounds

    def steps_at(self, laps: int, rounds: int) -> int:
        """How many steps have been taken after so many laps and rounds of the next."""
        if not self.epoch_steps or laps >= self.laps:
            return self.steps
        leg = self.leg(laps)
        return leg.step + min(rounds * self.every, leg.stop - leg.first)

    def rows(self, an_epoch: int, a_step: int, steps: int | None = None) -> int:
        """How many rows a rank reads on its way, or in its first steps.

        It reads so many in an epoch, and in a step while it has some.
        """
        whole, rest = divmod(self.steps if steps is None else steps, max(1, self.epoch_steps))
        return whole * an_epoch + min(an_epoch, rest * a_step)

    def _ends(self, steps: int) -> int:
        """How many laps end within the first so many steps."""
        both = math.lcm(self._lap, self.epoch_steps)
        return steps // self._lap + steps // self.epoch_steps - steps // both

    def _end(self, laps: int) -> int:
        """After how many steps so many laps have ended."""
        low, high = 0, laps * min(self._lap, self.epoch_steps)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._ends(middle) < laps else (low, middle)
        return low


def _parts(length: int, part: int) -> int:
    return -(-length // max(1, part))
