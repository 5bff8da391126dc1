"""BigDL's triggers: when to stop, to validate, to save, to note a summary. Runs on the driver.

A trigger is asked between two steps. `TrainingState.epoch` and `neval` are BigDL's: the epoch and the step that come
next, both counted from 1, so that `MaxEpoch(5)` fires once `epoch` is 6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from keraunos.compat.zoo.bigdl.optim.arguments import float_type, number, whole
from keraunos.errors import JobError


@dataclass(frozen=True)
class TrainingState:
    """Where training stands between two steps.

    Attributes:
        epoch: the epoch that comes next, from 1.
        neval: the step that comes next, from 1.
        loss: the loss of the step before.
        score: the last result of the first validation method; `None` before a validation.
        epoch_finished: whether the step before was its epoch's last.
    """

    epoch: int = 1
    neval: int = 1
    loss: float | None = None
    score: float | None = None
    epoch_finished: bool = False

    @classmethod
    def after(
        cls,
        steps: int,
        epochs: int,
        *,
        loss: float | None = None,
        score: float | None = None,
        epoch_finished: bool = False,
    ) -> TrainingState:
        """Returns the state after these numbers of steps and completed epochs."""
        return cls(epochs + 1, steps + 1, loss, score, epoch_finished)


@dataclass(frozen=True)
class Needs:
    """The conditions under which a trigger must be checked, and when it fires at the latest.

    Attributes:
        lap: it must be asked after every this many steps; `None` if the ends of epochs suffice.
        steps: it has fired once this many steps were taken; `None` if that is not known.
        epochs: it has fired once this many epochs were finished; `None` if that is not known.
        loss: whether it depends on the training loss.
        score: whether it depends on the score of a validation.
    """

    lap: int | None = None
    steps: int | None = None
    epochs: int | None = None
    loss: bool = False
    score: bool = False


class Trigger(ABC):
    """Something that fires at some moments of a training."""

    @abstractmethod
    def fires(self, state: TrainingState) -> bool:
        """Returns whether it fires now. A trigger remembers nothing, so it may be asked any number of times."""

    @abstractmethod
    def needs(self) -> Needs:
        """When it must be asked, and by when it has fired."""

    def __repr__(self) -> str:
        arguments = ", ".join(repr(value) for value in vars(self).values())
        return f"{type(self).__name__}({arguments})"


class MaxEpoch(Trigger):
    """From the end of the `max_epoch`-th epoch on."""

    def __init__(self, max_epoch: int, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.max_epoch = whole("max_epoch", max_epoch)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether this many epochs are finished."""
        return state.epoch > self.max_epoch

    def needs(self) -> Needs:
        """It fires at the end of an epoch."""
        return Needs(epochs=self.max_epoch)


class MaxIteration(Trigger):
    """From the end of the `max`-th step on."""

    def __init__(self, max: int, bigdl_type: str = "float") -> None:  # noqa: A002 - BigDL's name
        float_type(bigdl_type)
        self.max = whole("max", max)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether this many steps were taken."""
        return state.neval > self.max

    def needs(self) -> Needs:
        """It fires after a known step."""
        return Needs(steps=self.max)


class EveryEpoch(Trigger):
    """At the end of every epoch."""

    def __init__(self, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether an epoch has just ended."""
        return state.epoch_finished

    def needs(self) -> Needs:
        """Returns the ends of epochs suffice."""
        return Needs()


class SeveralIteration(Trigger):
    """After every `interval` steps."""

    def __init__(self, interval: int, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.interval = whole("interval", interval)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether another `interval` steps have just been completed."""
        taken = state.neval - 1
        return taken > 0 and taken % self.interval == 0

    def needs(self) -> Needs:
        """It must be asked after every `interval` steps."""
        return Needs(lap=self.interval)


class MaxScore(Trigger):
    """While the score of the last validation is above `max`."""

    def __init__(self, max: float, bigdl_type: str = "float") -> None:  # noqa: A002 - BigDL's name
        float_type(bigdl_type)
        self.max = number("max", max)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether there is a score, and it is above the bound."""
        return state.score is not None and state.score > self.max

    def needs(self) -> Needs:
        """It depends on the score, which changes only with a validation."""
        return Needs(score=True)


class MinLoss(Trigger):
    """While the loss of the last step is below `min`."""

    def __init__(self, min: float, bigdl_type: str = "float") -> None:  # noqa: A002 - BigDL's name
        float_type(bigdl_type)
        self.min = number("min", min)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether there is a loss, and it is below the bound."""
        return state.loss is not None and state.loss < self.min

    def needs(self) -> Needs:
        """Returns every step has a loss, so it must be asked after each."""
        return Needs(lap=1, loss=True)


class TriggerAnd(Trigger):
    """When all of the triggers fire at once."""

    def __init__(self, first: Trigger, *others: Trigger) -> None:
        self.triggers = _checked(first, *others)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether all of them fire."""
        return all(each.fires(state) for each in self.triggers)

    def needs(self) -> Needs:
        """Returns the needs of all of them; it has fired at the latest when the last of them has."""
        needs = [each.needs() for each in self.triggers]
        steps = [each.steps for each in needs if each.steps is not None]
        # An epoch has at least one step, so a bound in steps is one in epochs too.
        epochs = [_least(each.epochs, each.steps) for each in needs]
        known = [each for each in epochs if each is not None]
        # The last missing condition may become true at a step, so the trigger must be checked at that step.
        looks = [*(each.lap for each in needs), *(steps if len(steps) < len(needs) else [])]
        return Needs(
            _lap(looks),
            max(steps) if len(steps) == len(needs) else None,
            max(known) if len(known) == len(needs) else None,
            any(each.loss for each in needs),
            any(each.score for each in needs),
        )

    def __repr__(self) -> str:
        return f"TriggerAnd({', '.join(map(repr, self.triggers))})"


class TriggerOr(Trigger):
    """When any of the triggers fires."""

    def __init__(self, first: Trigger, *others: Trigger) -> None:
        self.triggers = _checked(first, *others)

    def fires(self, state: TrainingState) -> bool:
        """Returns whether one of them fires."""
        return any(each.fires(state) for each in self.triggers)

    def needs(self) -> Needs:
        """Returns the needs of all of them; it has fired at the latest when the first of them has."""
        needs = [each.needs() for each in self.triggers]
        return Needs(
            _lap([each.lap for each in needs]),
            _least(*(each.steps for each in needs)),
            _least(*(each.epochs for each in needs)),
            any(each.loss for each in needs),
            any(each.score for each in needs),
        )

    def __repr__(self) -> str:
        return f"TriggerOr({', '.join(map(repr, self.triggers))})"


def trigger_named(value: Any) -> Trigger:
    """Returns the given trigger, or the one of a name such as `"EveryEpoch"`."""
    if isinstance(value, Trigger):
        return value
    if isinstance(value, str) and value.lower() in {"everyepoch", "every_epoch"}:
        return EveryEpoch()
    raise JobError(
        "A trigger must be EveryEpoch, MaxEpoch, MaxIteration, MaxScore, MinLoss, SeveralIteration, TriggerAnd or "
        f"TriggerOr, or the name 'EveryEpoch'. Received: {value!r}."
    )


def _checked(*triggers: Any) -> tuple[Trigger, ...]:
    return tuple(trigger_named(each) for each in triggers)


def _least(*values: int | None) -> int | None:
    return min((each for each in values if each is not None), default=None)


def _lap(looks: list[int | None]) -> int | None:
    laps = [each for each in looks if each is not None]
    return math.gcd(*laps) if laps else None
