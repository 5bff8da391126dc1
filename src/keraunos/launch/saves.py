"""When a fit that goes on is saved; nothing happens where nobody asked for it. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from keraunos.checkpoints.writer import CheckpointWriter
from keraunos.exchange.coordination import Event, StateGiven
from keraunos.exchange.messages import Missed
from keraunos.exchange.server import Server
from keraunos.job.saving import SaveEvery, SavePoints
from keraunos.job.training_job import TrainingJob
from keraunos.launch.lap_book import ClosedLap, LapBook
from keraunos.launch.saver import Known, Saver


class Saves:
    """Passes what members say to the saver, and what it wants to know to the server.

    `know` gives what the driver knows now; `number` is that of the checkpoint before.
    """

    def __init__(
        self,
        job: TrainingJob,
        server: Server,
        saving: tuple[SaveEvery, CheckpointWriter] | None,
        number: int,
        know: Callable[[], Known],
        clock: Callable[[], float],
    ) -> None:
        self._synchronous = job.exchange.synchronous
        self._server = server
        self._saver = None if saving is None else Saver(job, *saving, number, know, clock)

    def begin(self, rows: Mapping[int, int]) -> SavePoints | None:
        """Training begins where it begins for all at once: the rounds before which to save."""
        return self._saver.begin(rows) if self._saver is not None and self._synchronous else None

    def give_up(self) -> bool:
        """Save nothing any more; whether that is a change."""
        saved, self._saver = self._saver is not None, None
        return saved

    def ask_if_due(self) -> None:
        """Ask for a state to save, where it is time to."""
        round_ = None if self._saver is None else self._saver.due()
        if round_:
            self._server.announce_save(round_)
        elif round_ == 0:
            self._ask_slices()

    def on_report(self, rank: int, round_: int) -> None:
        """A rank is in that round."""
        if self._saver is not None:
            self._saver.on_report(rank, round_)

    def on_state(self, event: Event, given: StateGiven, book: LapBook) -> None:
        """A member gave its part of a state."""
        if self._saver is not None:
            self._saver.on_state(event, given, self._server.saves, book)

    def on_missed(self, event: Event, _: Missed) -> None:
        """Somebody was past the round when it was announced."""
        if self._saver is not None:
            self._saver.on_missed(event.round)

    def on_lap(self, lap: ClosedLap) -> None:
        """A lap is closed."""
        if self._saver is None:
            return
        asks = self._saver.on_lap(lap.number + 1, ends_epoch=lap.over, epoch=lap.epoch, slices=self._server.saves)
        if asks:
            self._ask_slices()

    def _ask_slices(self) -> None:
        """Ask slices that have no common rounds for what they are; what the driver knows is of a moment before."""
        if self._saver is not None:
            self._saver.gather(self._server.held())
            self._server.save_slices()
