"""What a fit gives. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from keraunos.launch.rank_table import LostRows, RankTable
from keraunos.parameters import Vector
from keraunos.telemetry.history import History


class TrainingResult:
    """What a fit gives: the trained model, and what it measured.

    Attributes:
        history: the epochs and their metrics; where training ended early by itself, why (`history.ended`); and how many
            rows were skipped (`history.skipped_rows`).
        parameters: the trained parameters as one vector, where the fit was this process's own.
        contributed: how many rows of each rank the servers have applied, over the whole training.
        ranks: what each rank did with its time; prints as a table.
        lost_rows: which rows were missing from when on, because their worker was lost and `on_worker_lost` is
            `"continue"`.
    """

    def __init__(
        self,
        archive: Callable[[], bytes],
        history: History,
        parameters: Vector | None = None,
        contributed: Mapping[int, int] | None = None,
        *,
        ranks: RankTable | None = None,
        lost_rows: Sequence[LostRows] = (),
    ) -> None:
        self._archive = archive
        self.history = history
        self.parameters = parameters
        self.contributed = dict(contributed or {})
        self.ranks = RankTable() if ranks is None else ranks
        self.lost_rows = tuple(lost_rows)

    @cached_property
    def archive(self) -> bytes:
        """The model with all that was compiled into it, as an archive."""
        return self._archive()
