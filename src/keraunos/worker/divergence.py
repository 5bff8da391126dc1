"""What a worker does when a loss, or what it is about to share, is not finite. Runs on workers.

Every round is looked at before it is shared: nothing infinite or NaN reaches a server or an optimizer. `"stop"` tells
the driver, which ends the training with the last good parameters; `"skip"` passes the round and undoes its steps.
Parameters may also break by a step that was finite and much too large. That shows at a lap's end, or in the next
gradient, and the last good ones are then those of a lap's beginning, of which every worker keeps a copy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from keraunos.exchange.client import Client
from keraunos.exchange.messages import Diverged, Recall
from keraunos.job.training_job import TrainingJob
from keraunos.learners.learner import Learner
from keraunos.parameters import Vector, all_finite, are_finite

logger = logging.getLogger(__name__)


class Watch:
    """One rank's eye on its rounds; `on_divergence="ignore"` closes it, at no cost."""

    def __init__(self, job: TrainingJob, client: Client, learner: Learner) -> None:
        self._open = job.on_divergence != "ignore"
        self._skips = job.on_divergence == "skip"
        self._client = client
        self._learner = learner
        self._steps_alone = job.exchange.send != "gradients"
        # An optimizer that scales the loss expects such gradients now and then, and passes over them itself.
        self._by_round = self._open and (self._steps_alone or not learner.expects_overflow)
        self._kept: Vector = np.empty(0)
        self._kept_optimizer: list[Any] = []
        self._place = (0, 0)
        self._offered = self._skipped = 0
        if self._open:
            client.on(Recall, lambda _, __: client.send_parameters(self._kept))

    def begin(self, parameters: Callable[[], Vector]) -> None:
        """Training begins with what `parameters` gives."""
        if self._open:
            self._keep(parameters())

    def at(self, epoch: int, step: int) -> None:
        """The next round begins behind so many steps."""
        self._place = (epoch, step)

    def allows(
        self, round_: int, what: str, values: Any, rows: int, factor: float = 1.0, parts: Sequence[Any] = ()
    ) -> bool:
        """Whether a round's contribution, `values` times `factor`, may be shared; no return where that is the end.

        `parts` are the denominators that go with a gradient.
        """
        if not self._by_round:
            return True
        self._offered += rows
        if not self._learner.loss_is_finite():
            self._refuse(round_, "loss", rows)
            # The metrics of this part of the lap have it in them, and cannot be told apart.
            self._learner.take_metrics()
            return False
        if self._learner.is_finite(values, factor) and all(each is None or math.isfinite(each) for each in parts):
            return True
        self._refuse(round_, what, rows)
        return False

    def allows_result(self, round_: int, reduced: Any, rows: int) -> bool:
        """Whether the gradient of all workers may be applied here; a sum of large ones may be too large."""
        if not self._by_round or self._learner.is_finite(reduced):
            return True
        self._refuse(round_, "sum of all gradients", rows)
        return False

    def undo(self, round_: int, parameters: Any) -> None:
        """A round was skipped, and training goes on from these parameters; they, and the optimizer, must be good."""
        if not self._learner.is_finite(parameters):
            self._stop(round_, "parameters")
        if not self._steps_alone:
            return
        state = self._learner.optimizer_state()
        good = [are_finite([each]) for each in state]
        if not all(good):
            kept = zip(state, self._kept_optimizer, good, strict=True)
            self._learner.restore_optimizer([now if fine else before for now, before, fine in kept])

    def end_lap(self, round_: int, parameters: Callable[[], Vector]) -> None:
        """A lap led to what `parameters` gives, and the next one begins with it."""
        if not self._open:
            return
        reached = parameters()
        if not all_finite(reached):
            self._stop(round_, "parameters")
        self._keep(reached)

    def take_lap(self) -> tuple[int, bool]:
        """What the driver is told of a lap: the rows that were skipped, and whether there were others."""
        facts = self._skipped, self._offered > self._skipped
        self._offered = self._skipped = 0
        return facts

    def _keep(self, parameters: Vector) -> None:
        if self._kept.size != parameters.size:
            self._kept = np.empty_like(parameters)
        np.copyto(self._kept, parameters)
        if self._skips and self._steps_alone:
            state = self._learner.optimizer_state()
            if are_finite(state):
                self._kept_optimizer = state

    def _refuse(self, round_: int, what: str, rows: int) -> None:
        if not self._skips:
            self._stop(round_, what)
        self._skipped += rows
        logger.info("rank %d skips round %d: its %s is not finite", self._client.rank, round_, what)

    def _stop(self, round_: int, what: str) -> NoReturn:
        self._client.diverged(round_, Diverged(*self._place, what))
