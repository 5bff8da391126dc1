"""Putting a checkpoint together from what the members of a job give, and taking one apart. Runs on the driver.

A whole state has three parts: what each rank has, what each slice is, and what the driver knows (the history, the
metrics of the epoch that is open, what hooks remember). Under a synchronous plan all of them are of one round.
Otherwise there is no such round: a slice says for itself which rounds of which rank are in it, and a rank continues
there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keraunos.checkpoints.checkpoint import Checkpoint
from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.errors import CheckpointError
from keraunos.exchange.coordination import Event, StateGiven
from keraunos.exchange.held_states import Standing
from keraunos.exchange.kept import Kept
from keraunos.exchange.messages import Go
from keraunos.job.course import Course
from keraunos.job.saving import SaveEvery, SavePoints
from keraunos.job.training_job import TrainingJob
from keraunos.launch.lap_book import LapBook
from keraunos.learners.home_model import HomeModel

# How far ahead a round is announced: so many rounds as go by in this time, and at least some.
_AHEAD_SECONDS = 1.0
_AHEAD_ROUNDS = 4
# A training that is asked for more epochs goes on; everything else must be as it was.
MAY_DIFFER = ("epochs", "steps")


@dataclass
class Known:
    """What the driver knows at one moment of a training."""

    facts: dict[str, Any]
    book: LapBook
    hooks: Sequence[tuple[dict[str, Any], Sequence[Any]]]


@dataclass
class _Gathered:
    known: Known | None = None
    ranks: dict[int, tuple[int, Sequence[Any]]] = field(default_factory=dict)
    slices: dict[int, Kept] = field(default_factory=dict)


class Saver:
    """Gathers the parts of each state that is to be saved, and hands whole ones to the writer.

    `know` gives what the driver knows now. All calls come from the thread that follows the fit.
    """

    def __init__(
        self,
        job: TrainingJob,
        every: SaveEvery,
        writer: CheckpointWriter,
        number: int,
        know: Callable[[], Known],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._every = every
        self._writer = writer
        self._number = number
        self._know = know
        self._clock = clock
        self._saved_at = clock()
        self._course: Course | None = None
        self._expected: frozenset[int] = frozenset()
        self._open: dict[int, _Gathered] = {}
        self._reported: dict[int, tuple[int, float]] = {}
        self._rates: dict[int, float] = {}
        self._announced: int | None = None
        self._ahead = 1.0
        self._rounds_saved = 0

    def begin(self, rows: Mapping[int, int]) -> SavePoints:
        """A synchronous training begins with these ranks; the rounds before which to save that are known already."""
        self._expected = frozenset(rows)
        self._course = Course.of(self._job, rows, min(rows))
        return _points(self._every, self._course)

    def on_report(self, rank: int, round_: int) -> None:
        """A rank is in that round."""
        before, now = self._reported.get(rank), self._clock()
        if before is not None and now > before[1]:
            self._rates[rank] = max(0.0, (round_ - before[0]) / (now - before[1]))
        self._reported[rank] = (round_, now)

    def due(self) -> int | None:
        """Whether to ask for a state now: before which round, or 0 for a plan without common rounds; once each time."""
        if self._every.unit == "seconds":
            if self._clock() - self._saved_at < self._every.count or not self._reported or self._announced is not None:
                return None
            self._saved_at = self._clock()
            if not self._job.exchange.synchronous:
                return 0
            rounds = max(round_ for round_, _ in self._reported.values())
            # All of it grows with every miss: a rate of nothing is that of a worker who only reports late.
            per_try = max(_AHEAD_ROUNDS, max(self._rates.values(), default=0) * _AHEAD_SECONDS)
            self._announced = rounds + int(per_try * self._ahead)
            return self._announced
        if self._every.unit == "rounds" and not self._job.exchange.synchronous and self._reported:
            passed = min(round_ for round_, _ in self._reported.values()) // int(self._every.count)
            if passed > self._rounds_saved:
                self._rounds_saved = passed
                return 0
        return None

    def on_missed(self, round_: int) -> None:
        """Somebody was past that round when it was announced: try again, further ahead."""
        if round_ == self._announced:
            self._ahead *= 2
            self._announced = None
            self._open.pop(round_, None)
            self._saved_at = float("-inf")

    def on_state(self, event: Event, given: StateGiven, slices: int, book: LapBook) -> None:
        """A rank or a slice gave its part of a state."""
        if not self._job.exchange.synchronous:
            gathered = self._open.get(0)
            if gathered is not None and given.slice is not None:
                gathered.slices[event.rank] = given.slice
                self._hand_over(0, slices)
            return
        gathered = self._open.setdefault(event.round, _Gathered())
        if gathered.known is None and not self._ends_lap(event.round):
            gathered.known = self._know()
        if given.slice is not None:
            gathered.slices[event.rank] = given.slice
        else:
            gathered.ranks[event.rank] = (event.round, event.arrays)
            if gathered.known is not None:
                gathered.known.book.catch_up(event.rank, book)
        self._hand_over(event.round, slices)

    def on_lap(self, laps: int, *, ends_epoch: bool, epoch: int, slices: int) -> bool:
        """So many laps have ended; whether slices are to be asked for what they are, under a plan without rounds."""
        if self._job.exchange.synchronous:
            for round_, gathered in list(self._open.items()):
                if gathered.known is None and self._course is not None and self._course.place(round_) == (laps, 0):
                    gathered.known = self._know()
                    self._hand_over(round_, slices)
            return False
        return self._every.unit == "epochs" and ends_epoch and (epoch + 1) % int(self._every.count) == 0

    def gather(self, states: Mapping[int, tuple[int, Sequence[Any]]]) -> None:
        """The slices of a plan without common rounds are about to be asked; `states` is what ranks left last."""
        self._open[0] = _Gathered(self._know(), dict(states))

    def _ends_lap(self, round_: int) -> bool:
        return self._course is not None and self._course.place(round_)[1] == 0

    def _hand_over(self, round_: int, slices: int) -> None:
        gathered = self._open[round_]
        if gathered.known is None or len(gathered.slices) < slices or not self._expected <= gathered.ranks.keys():
            return
        # What is older and still not whole will never be: a rank that was lost has come back behind it.
        self._open = {each: parts for each, parts in self._open.items() if each > round_}
        if round_ == self._announced:
            self._announced, self._ahead, self._saved_at = None, 1.0, self._clock()
        kept = [gathered.slices[rank] for rank in sorted(gathered.slices)]
        facts = {
            "round": round_,
            "slices": [each.to_json() for each in kept],
            "ranks": [[rank, kept_at] for rank, (kept_at, _) in sorted(gathered.ranks.items())],
        }
        arrays: dict[str, Sequence[Any]] = {f"slice-{index}": each.arrays for index, each in enumerate(kept)}
        arrays |= {f"rank-{rank}": each for rank, (_, each) in gathered.ranks.items()}
        self._submit(facts, arrays, gathered.known)

    def _submit(self, facts: dict[str, Any], arrays: dict[str, Sequence[Any]], known: Known) -> None:
        self._number += 1
        book, book_arrays = known.book.keep()
        hooks = [facts for facts, _ in known.hooks]
        schedule = self._job.schedule
        whole = {
            **facts,
            **known.facts,
            "book": book,
            "hooks": hooks,
            "epochs": schedule.epochs,
            "steps": schedule.steps,
            "first_epoch": schedule.first_epoch,
        }
        arrays = {**arrays, "book": book_arrays}
        arrays |= {f"hooks-{index}": each for index, (_, each) in enumerate(known.hooks)}
        self._writer.submit(Checkpoint(self._number, whole, arrays))


class Resumed:
    """A training as a checkpoint has it.

    Attributes:
        number: that of the checkpoint.
        facts: what the driver knew.
        longer: whether there is more to do now than was asked for then.
    """

    def __init__(self, checkpoint: Checkpoint, job: TrainingJob) -> None:
        self.number = checkpoint.number
        self.facts = checkpoint.facts
        self._arrays = checkpoint.arrays
        schedule = job.schedule
        try:
            self.longer = (schedule.epochs, schedule.steps) != (checkpoint.facts["epochs"], checkpoint.facts["steps"])
            self._check()
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"Checkpoint {self.number} does not tell where the training stands. Expected: what a fit saves. "
                f"Received: {type(error).__name__}: {str(error)[:200]}. Choose another checkpointDir, or remove this "
                "one, to train from the beginning."
            ) from error

    @property
    def first_epoch(self) -> int:
        """The epoch that the training had begun with."""
        return int(self.facts.get("first_epoch", 0))

    @property
    def decided(self) -> Go | None:
        """What the driver decided after the last lap; where there is more to do now, not that it was the last."""
        if self.facts["decided"] is None:
            return None
        decided = Go.of(self.facts["decided"])
        return replace(decided, last=False) if self.longer else decided

    def standing(self) -> Standing:
        """Where everyone stands."""
        slices = [
            Kept.from_json(each, list(self._arrays[f"slice-{index}"]))
            for index, each in enumerate(self.facts["slices"])
        ]
        states = {int(rank): (int(round_), self._arrays[f"rank-{rank}"]) for rank, round_ in self.facts["ranks"]}
        return Standing(
            states=_shared(states),
            slices=slices,
            laps_done={int(rank): int(laps) for rank, laps in self.facts["laps_done"]},
            steps_traced={int(rank): int(steps) for rank, steps in self.facts["steps_traced"]},
            decided=self.decided,
        )

    def _check(self) -> None:
        """Read all that will be asked for, so that what is missing is known before anything goes on from it."""
        self.standing()
        self.restore_book(LapBook())
        self.hooks()
        if self.facts["learning_rate"] is not None:
            float(self.facts["learning_rate"])

    def restore_book(self, book: LapBook) -> None:
        """Enter what was measured."""
        book.go_on_from(self.facts["book"], self._arrays["book"])
        if self.longer:
            book.prolong()

    def hooks(self) -> list[tuple[Mapping[str, Any], Sequence[Any]]]:
        """What each of the hooks remembered."""
        return [(facts, self._arrays[f"hooks-{index}"]) for index, facts in enumerate(self.facts["hooks"])]


def identity_of(job: TrainingJob, home: HomeModel) -> dict[str, Any]:
    """What must be the same for a training to go on; initial weights need not be, since the saved ones replace them."""
    schedule = job.schedule.to_json()
    # Not asked for: it follows from what callbacks have restored.
    schedule.pop("first_epoch")
    return {
        "model": home.identity(),
        "backend": job.model.backend,
        "columns": job.columns.to_json(),
        "exchange": job.exchange.to_json(),
        "workers": job.workers,
        "servers": job.servers,
        **schedule,
    }


def _points(every: SaveEvery, course: Course) -> SavePoints:
    """The rounds of a synchronous training that are saved; those by the clock are announced as it goes."""
    if every.unit == "rounds":
        return SavePoints(every=int(every.count))
    if every.unit == "seconds":
        return SavePoints()
    rounds, done = [], 0
    for number in range(course.laps):
        leg = course.leg(number)
        done += leg.rounds
        if leg.ends_epoch and (leg.epoch + 1) % int(every.count) == 0:
            rounds.append(done)
    return SavePoints(rounds=frozenset(rounds))


def _shared(states: Mapping[int, tuple[int, Sequence[Any]]]) -> dict[int, tuple[int, Sequence[Any]]]:
    """Where one rank gave what all have, the others have it from there."""
    whole = next((arrays for _, arrays in states.values() if _is_whole(arrays)), None)
    if whole is None:
        return dict(states)
    weights, _, *optimizer = whole
    shared: dict[int, tuple[int, Sequence[Any]]] = {}
    for rank, (round_, arrays) in states.items():
        if _is_whole(arrays):
            shared[rank] = (round_, arrays)
        else:
            residual = arrays[1]
            shared[rank] = (round_, [weights, residual, *optimizer] if residual.size else whole)
    return shared


def _is_whole(arrays: Sequence[Any]) -> bool:
    """Whether there are weights or an optimizer's state in what a rank gave, and not only its residual."""
    return len(arrays) > 2 or bool(arrays[0].size)
