"""The actions of a `TFOptimizer` between steps: end, validate, save, summarise, by its triggers. Runs on the driver.

Triggers are asked where the workers meet the driver. The schedule is laid so that this is the case after every step
at which one may fire; what is noted of single steps is noted when the stretch that they are in has ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, RateFollower
from keraunos.compat.zoo.bigdl.optim.summaries import TrainSummary, ValidationSummary
from keraunos.compat.zoo.bigdl.optim.triggers import EveryEpoch, MaxEpoch, TrainingState, Trigger
from keraunos.launch.hooks import Hooks, Lap
from keraunos.learners.home_model import HomeModel
from keraunos.parameters import Layout, Vector

# An end that no trigger determines beforehand; no training reaches it.
_ENDLESS = 2**31 - 1


class CheckpointSink(Protocol):
    """Writes a checkpoint of parameters."""

    def __call__(self, state: TrainingState, layout: Layout, vector: Vector) -> None:
        """Write one."""


@dataclass
class Plan:
    """The triggers of actions, and the actions.

    Attributes:
        end: when the training ends.
        checkpoint: when to validate and to save.
        validate: measures parameters on the driver, and returns results by name.
        scores: returns the results by name where workers validate, from what they measured: a lap's logs.
        tag: the tag of a result in the validation summary.
        save: writes a checkpoint.
        train_summary: what is noted of steps.
        val_summary: what is noted of validations.
    """

    end: Trigger = field(default_factory=lambda: MaxEpoch(1))
    checkpoint: Trigger = field(default_factory=EveryEpoch)
    validate: Callable[[Vector], dict[str, float]] | None = None
    scores: Callable[[Mapping[str, float]], dict[str, float]] | None = None
    tag: Callable[[str], str] = str
    save: CheckpointSink | None = None
    train_summary: TrainSummary | None = None
    val_summary: ValidationSummary | None = None

    def schedule(self, before: TrainingState) -> dict[str, Any]:
        """The end and the laps of a job, as arguments of its schedule, for a training that stands at `before`."""
        needs = [self.end.needs(), self.checkpoint.needs()]
        parameters = None if self.train_summary is None else self.train_summary.triggers.get("Parameters")
        if parameters is not None:
            needs.append(parameters.needs())
        laps = [each.lap for each in needs if each.lap is not None]
        steps, epochs = needs[0].steps, needs[0].epochs
        return {
            # Triggers count the steps before this training, too.
            "lap": math.gcd(*laps, before.neval - 1) if laps else None,
            "steps": None if steps is None else max(1, steps - before.neval + 1),
            "epochs": _ENDLESS if epochs is None else max(1, epochs - before.epoch + 1),
            "validation_lap": self._validation_lap(before),
        }

    def _validation_lap(self, before: TrainingState) -> int | None:
        """After how many steps workers validate, so that they have wherever the trigger fires; `None` for every lap."""
        needs = self.checkpoint.needs()
        if needs.steps is not None or needs.epochs is not None:
            return None
        return 0 if needs.lap is None else math.gcd(needs.lap, before.neval - 1)


class TrainingHooks(Hooks):
    """The triggers of one `optimize`; `state` is where the training stands."""

    def __init__(
        self,
        plan: Plan,
        before: TrainingState,
        rates: dict[str, OptimMethod],
        follower: RateFollower | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = before
        self.scores: dict[str, float] = {}
        self._plan = plan
        self._first = before
        self._rates = rates
        self._follower = follower
        self._clock = clock
        self._layout: Layout | None = None
        self._losses: dict[int, tuple[float, float]] = {}
        self._seen = 0
        self._started = clock()

    def begin(self, home: HomeModel) -> None:
        """Learn how parameters lie in a vector."""
        self._layout = home.layout

    def on_ready(self, rank: int, rows: int) -> None:
        """The first stretch begins when the last worker is ready."""
        self._started = self._clock()

    def on_losses(
        self, rank: int, first_step: int, losses: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
    ) -> None:
        """Add up the losses of a step's workers, by their rows."""
        for step, (loss, count) in enumerate(zip(losses, rows, strict=True), first_step + 1):
            total, counted = self._losses.get(step, (0.0, 0.0))
            self._losses[step] = (total + float(loss) * float(count), counted + float(count))

    def end_lap(self, lap: Lap) -> bool:
        """Record the steps of the lap, then run the actions that are due. Returns whether training ends."""
        states = self._states(lap)
        self.state = states[-1]
        self._note_steps(states)
        vector: Vector | None = None
        if self._due(self._plan.checkpoint, states):
            if self._plan.scores is not None:
                self._note_scores(self._plan.scores(lap.logs))
            if self._plan.validate or self._plan.save:
                vector = lap.parameters()
                self._validate(vector)
                self._save(vector)
        self._note_parameters(states, lap, vector)
        if lap.ends_epoch and self._follower is not None:
            self._follower.end_epoch(lap.rule, loss=self.state.loss, score=self.state.score)
        self._started = self._clock()
        return self._due(self._plan.end, [*states[:-1], self.state])

    def end(self) -> None:
        """All that was noted can be read by now."""
        for summary in (self._plan.train_summary, self._plan.val_summary):
            if summary is not None:
                summary.sync()

    def _states(self, lap: Lap) -> list[TrainingState]:
        """Returns where the training stood after each step of the lap; the last has the epoch's end where it is one."""
        steps = range(self._seen + 1, lap.step + 1)
        states = []
        for step in steps:
            last = step == lap.step
            total, counted = self._losses.get(step, (0.0, 0.0))
            loss = total / counted if counted else None
            if last and not self._losses:
                # A learner that does not report single steps reports the mean since the last lap.
                loss = lap.logs.get("loss")
            states.append(
                TrainingState.after(
                    self._first.neval - 1 + step,
                    self._first.epoch - 1 + lap.epoch + (1 if last and lap.ends_epoch else 0),
                    loss=loss,
                    score=self.state.score,
                    epoch_finished=last and lap.ends_epoch,
                )
            )
        self._seen = lap.step
        return states or [self.state]

    def _due(self, trigger: Trigger, states: Sequence[TrainingState]) -> bool:
        return any(trigger.fires(state) for state in states)

    def _validate(self, vector: Vector) -> None:
        if self._plan.validate is not None:
            self._note_scores(self._plan.validate(vector))

    def _note_scores(self, scores: dict[str, float]) -> None:
        self.scores = scores
        score = next(iter(self.scores.values()), None)
        state = self.state
        self.state = TrainingState(state.epoch, state.neval, state.loss, score, state.epoch_finished)
        if self._plan.val_summary is not None:
            for name, value in self.scores.items():
                self._plan.val_summary.add_scalar(self._plan.tag(name), value, state.neval - 1)
            self._plan.val_summary.flush()

    def _save(self, vector: Vector) -> None:
        if self._plan.save is not None and self._layout is not None:
            self._plan.save(self.state, self._layout, vector)

    def _note_steps(self, states: Sequence[TrainingState]) -> None:
        summary = self._plan.train_summary
        rows = sum(counted for _, counted in self._losses.values())
        seconds = max(self._clock() - self._started, 1e-9)
        self._losses.clear()
        if summary is None:
            return
        triggers = summary.triggers
        for state in states:
            step = state.neval - 1
            if state.loss is not None and _fires(triggers, "Loss", state):
                summary.add_scalar("Loss", state.loss, step)
            if rows and _fires(triggers, "Throughput", state):
                summary.add_scalar("Throughput", rows / seconds, step)
            if _fires(triggers, "LearningRate", state):
                for prefix, method in self._rates.items():
                    rate = method.rate_at(step) if self._follower is None else self._follower.rate
                    summary.add_scalar(f"LearningRate/{prefix}" if prefix else "LearningRate", rate, step)
        summary.flush()

    def _note_parameters(self, states: Sequence[TrainingState], lap: Lap, vector: Vector | None) -> None:
        summary = self._plan.train_summary
        if summary is None or self._layout is None or "Parameters" not in summary.triggers:
            return
        if self._due(summary.triggers["Parameters"], states):
            values = self._layout.split(lap.parameters() if vector is None else vector)
            for name, value in list(zip(self._layout.names, values, strict=True))[: self._layout.trainable]:
                summary.add_histogram(name, value, self.state.neval - 1)
            summary.flush()


def _fires(triggers: Any, name: str, state: TrainingState) -> bool:
    return name in triggers and triggers[name].fires(state)
