"""What a front-end may do on the driver while a job trains. Runs on the driver.

The workers meet the driver at the end of every lap: an epoch, or with `Schedule.lap` a number of steps. Hooks are
told then, and may read the parameters, set the learning rate of the home model, and end the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.exchange.rules.rule import Rule
from keraunos.learners.home_model import HomeModel
from keraunos.parameters import Vector


@dataclass(frozen=True)
class Lap:
    """The stretch between two meetings of the workers with the driver, as it ended.

    Attributes:
        epoch: the epoch it belongs to, counted from 0.
        step: how many steps have been taken since the training began. Where workers do not wait for each other, this
            is how many the furthest had taken when it ended this lap.
        ends_epoch: whether every row of the epoch has been used.
        last: whether training ends here, by its schedule or because hooks that were asked before said so.
        logs: the metrics of this lap alone; those of validation rows, `val_…`, are measured at its end.
        epoch_logs: the metrics of the epoch up to here. What a hook changes in it is changed in the history.
        parameters: gives the parameters as they are now, a vector of the caller's own; call it before `end_lap`
            returns. They travel to the driver only when somebody asks.
        rule: the rule that applies what workers send, where parameters live on the driver; `None` elsewhere. It may be
            changed before `end_lap` returns, where workers wait for each other.
    """

    epoch: int
    step: int
    ends_epoch: bool
    logs: Mapping[str, float]
    parameters: Callable[[], Vector]
    last: bool = False
    epoch_logs: dict[str, float] = field(default_factory=dict)
    rule: Rule | None = None


class Hooks:
    """Called by the thread that called `fit`. What a hook raises ends the fit; `end` is then not called.

    A subclass needs to write only what it uses. Whoever only wants to know what happens is a listener instead
    (`telemetry.listener`), which cannot disturb the training.
    """

    @property
    def reads_losses(self) -> bool:
        """Whether workers send each step's loss, for `on_losses`: where a subclass has its own."""
        return type(self).on_losses is not Hooks.on_losses

    def begin(self, home: HomeModel) -> None:
        """The training begins; `home` has the model's initial parameters, and the final ones when `end` is called."""

    def on_ready(self, rank: int, rows: int) -> None:
        """A worker has read its rows, so many of them to train on. One that was lost and comes back says so again."""

    def end_lap(self, lap: Lap) -> bool:
        """A lap ended; whether training is to stop here. Nobody trains on meanwhile where workers wait for another."""
        return False

    def on_losses(
        self, rank: int, first_step: int, losses: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
    ) -> None:
        """The losses of consecutive steps of one worker, and how many rows each was over.

        A worker's come in the order of its steps, counted from 0, and those of a lap before its `end_lap`. Where it has
        fewer rows than others it has no loss for an epoch's last steps. Learners that do not know each step's loss
        give none.
        """

    def keep(self) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
        """What these hooks remember, as JSON could hold it, and arrays: it is saved with the training."""
        return {}, []

    def go_on_from(self, facts: Mapping[str, Any], arrays: Sequence[npt.NDArray[Any]], epoch: int) -> None:
        """Remember what `keep` gave, behind `begin`, where a saved training goes on in that epoch."""

    def end(self) -> None:
        """The training is over and the home model has the final parameters; it may still be changed here."""
